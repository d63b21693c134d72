import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { kindDefinitions } from '../kinds/index.ts'
import { reviewResources } from '../reviews/index.ts'
import { apiModel } from './api-model.ts'
import { openapiDocument } from './openapi.ts'
import { methods, type Schema } from './openapi-types.ts'
import type { SwaggerDocument } from './openapi-v2.ts'
import { swaggerDocument } from './openapi-v2.ts'

/** The document that Kubernetes publishes with its source, where a peer has been built from it. */
const cache = spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).stdout?.trim() ?? ''
const file = join(cache, 'k8s.io/kubernetes@v1.36.3/api/openapi-spec/swagger.json')
const published = cache !== '' && existsSync(file)
if (!published) console.log('skipped: comparing OpenAPI needs the module k8s.io/kubernetes v1.36.3')

const ours = swaggerDocument(
  apiModel({ kinds: kindDefinitions, reviews: reviewResources }).map((groupVersion) =>
    openapiDocument(groupVersion, 'v1.36.3'),
  ),
  'v1.36.3',
)

/** Without words, which are everybody's own, and enums, which a server has and what is published has not. */
function essence(schema: Schema): unknown {
  const { description: _words, enum: _values, required, properties = {}, ...rest } = schema
  const { 'x-kubernetes-unions': _unions, ...own } = rest
  const inner = Object.entries(properties).map(([name, property]) => [name, essence(property)])
  return {
    ...own,
    ...(own.items && { items: essence(own.items) }),
    ...(own.additionalProperties && { additionalProperties: essence(own.additionalProperties) }),
    required: [...(required ?? [])].sort(),
    properties: Object.fromEntries(inner),
  }
}

const kindsOf = (schema: Schema | undefined): string[] =>
  (schema?.['x-kubernetes-group-version-kind'] ?? []).map(
    ({ group, version, kind }) => `${group}/${version}/${kind}`,
  )

describe.skipIf(!published)('against what Kubernetes publishes as OpenAPI v2 [GND-R65]', () => {
  const theirs: SwaggerDocument = published
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { ...ours, definitions: {}, paths: {} }

  test.each(Object.keys(ours.definitions))('%s has the same fields', (name) => {
    const own = ours.definitions[name] ?? {}
    const other = theirs.definitions[name] ?? {}
    expect(kindsOf(other)).toEqual(expect.arrayContaining(kindsOf(own)))
    // They serve more groups, and some structs are kinds of each.
    const { 'x-kubernetes-group-version-kind': _kinds, ...rest } = other
    const { 'x-kubernetes-group-version-kind': _ownKinds, ...ownRest } = own
    expect(essence(ownRest)).toEqual(essence(rest))
  })

  test.each(Object.keys(ours.paths))('%s has the same operations', (path) => {
    for (const method of methods) {
      const operation = ours.paths[path]?.[method]
      if (operation === undefined) continue
      const { operationId, tags, consumes = [], responses, ...rest } = operation
      const known = theirs.paths[path]?.[method]
      expect(known).toMatchObject({
        operationId,
        tags,
        'x-kubernetes-action': rest['x-kubernetes-action'],
        'x-kubernetes-group-version-kind': rest['x-kubernetes-group-version-kind'],
      })
      expect(known?.responses['200']?.schema).toEqual(responses['200']?.schema)
      const taken = known?.consumes ?? []
      expect(taken.includes('*/*') ? consumes : taken).toEqual(
        expect.arrayContaining([...consumes]),
      )
    }
  })
})
