import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { kindDefinitions } from '../kinds/index.ts'
import { reviewResources } from '../reviews/index.ts'
import { apiModel } from './api-model.ts'
import { openapiDocument, rootPathOf } from './openapi.ts'

/** The documents that Kubernetes publishes with its source, where a peer has been built from it. */
const cache = spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).stdout?.trim() ?? ''
const folder = join(cache, 'k8s.io/kubernetes@v1.36.3/api/openapi-spec/v3')
const published = cache !== '' && existsSync(folder)
if (!published) console.log('skipped: comparing OpenAPI needs the module k8s.io/kubernetes v1.36.3')

type Json = Record<string, unknown>

/** Without what is ours alone (descriptions, enums) or of no weight (zero defaults). */
function essence(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(essence)
  if (typeof value !== 'object' || value === null) return value
  const { allOf, description: _d, default: _z, enum: _e, ...rest } = value as Json
  const merged = Array.isArray(allOf) ? { ...(allOf[0] as Json), ...rest } : rest
  return Object.fromEntries(Object.entries(merged).map(([key, inner]) => [key, essence(inner)]))
}

/** Properties may be named like what `essence` removes, so they are taken one by one. */
function shape(schema: Json) {
  const properties = Object.entries((schema['properties'] ?? {}) as Json)
  return {
    required: [...((schema['required'] ?? []) as string[])].sort(),
    mapType: schema['x-kubernetes-map-type'],
    kinds: schema['x-kubernetes-group-version-kind'],
    properties: Object.fromEntries(properties.map(([name, inner]) => [name, essence(inner)])),
  }
}

const foreignParameters = /^(shardSelector|ignoreStoreReadErrorWithClusterBreakingPotential)$/

function operations(paths: Record<string, Record<string, Json>>, path: string) {
  const methods = ['get', 'put', 'post', 'delete', 'patch']
  return methods.flatMap((method) => {
    const found = paths[path]?.[method]
    if (found === undefined) return []
    const parameters = (found['parameters'] ?? []) as { name: string; in: string }[]
    return {
      method,
      id: found['operationId'],
      tags: found['tags'],
      action: found['x-kubernetes-action'],
      kind: found['x-kubernetes-group-version-kind'],
      // Where Kubernetes has its parameters beside the operations, ours are in them.
      parameters:
        path.split('/{name}/').length > 1 || !path.includes('{')
          ? 'any'
          : parameters
              .map(({ name }) => name)
              .filter((name) => !foreignParameters.test(name))
              .sort(),
    }
  })
}

const documents = apiModel({ kinds: kindDefinitions, reviews: reviewResources }).map(
  (groupVersion) => [rootPathOf(groupVersion).slice(1), groupVersion] as const,
)

describe.skipIf(!published)('against what Kubernetes publishes [GND-R43]', () => {
  test.each(documents)('%s has the same schemas and operations', (path, groupVersion) => {
    const file = join(folder, `${path.replaceAll('/', '__')}_openapi.json`)
    const theirs = JSON.parse(readFileSync(file, 'utf8'))
    const ours = JSON.parse(JSON.stringify(openapiDocument(groupVersion, 'v1.36.3')))
    for (const [name, schema] of Object.entries<Json>(ours.components.schemas))
      expect({ name, ...shape(schema) }).toEqual({
        name,
        ...shape(theirs.components.schemas[name]),
      })
    for (const name of Object.keys(ours.paths).filter((one) => !one.includes('reviews')))
      expect({ name, found: operations(ours.paths, name) }).toEqual({
        name,
        found: operations(theirs.paths, name),
      })
  })
})
