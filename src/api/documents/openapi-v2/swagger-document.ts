import type { GroupVersionKind } from '../../schema/index.ts'
import type { OpenapiDocument, Schema } from '../openapi-types.ts'
import { swaggerPath } from './swagger-paths.ts'
import { swaggerSchema } from './swagger-schema.ts'
import type { SwaggerDocument, SwaggerPath } from './swagger-types.ts'

const kindsKey = 'x-kubernetes-group-version-kind'

const nameOf = ({ group, version, kind }: GroupVersionKind): string => `${group}/${version}/${kind}`

/** A struct such as DeleteOptions is a kind of every group, and each document names its own. */
function withKindsOf(schema: Schema, before: Schema | undefined): Schema {
  const kinds = [...(before?.[kindsKey] ?? []), ...(schema[kindsKey] ?? [])]
  if (kinds.length === 0) return schema
  const distinct = new Map(kinds.map((kind) => [nameOf(kind), kind]))
  return { ...schema, [kindsKey]: [...distinct.values()] }
}

const sorted = <T>(entries: Iterable<readonly [string, T]>): Record<string, T> =>
  Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)))

/** Everything that the documents of OpenAPI v3 say, as one document of OpenAPI v2. */
export function swaggerDocument(
  documents: readonly OpenapiDocument[],
  serverVersion: string,
): SwaggerDocument {
  const paths = new Map<string, SwaggerPath>()
  const definitions = new Map<string, Schema>()
  for (const document of documents) {
    for (const [path, item] of Object.entries(document.paths)) paths.set(path, swaggerPath(item))
    for (const [name, schema] of Object.entries(document.components?.schemas ?? {}))
      definitions.set(name, withKindsOf(swaggerSchema(schema), definitions.get(name)))
  }
  const bearer = {
    description: 'Bearer token',
    type: 'apiKey',
    name: 'authorization',
    in: 'header',
  }
  return {
    swagger: '2.0',
    info: { title: 'Sallyport', version: serverVersion },
    paths: sorted(paths),
    definitions: sorted(definitions),
    securityDefinitions: { BearerToken: bearer },
    security: [{ BearerToken: [] }],
  }
}
