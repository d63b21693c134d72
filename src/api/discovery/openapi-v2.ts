import type { GroupVersionKind } from '../schema/index.ts'
import {
  type Content,
  type Method,
  methods,
  type OpenapiDocument,
  type Operation,
  type Parameter,
  type PathItem,
  type Schema,
} from './openapi-types.ts'

const inV3 = '#/components/schemas/'
const inV2 = '#/definitions/'

const each = (schemas: Readonly<Record<string, Schema>>): Record<string, Schema> =>
  Object.fromEntries(Object.entries(schemas).map(([name, inner]) => [name, swaggerSchema(inner)]))

/**
 * A schema of OpenAPI v3 in the words of v2, chosen as Kubernetes chooses them: references have
 * siblings, there are no default values, and what may be a string or a number is called a string.
 */
export function swaggerSchema(schema: Schema): Schema {
  const { allOf = [], oneOf, default: _default, $ref, ...own } = schema
  const { items, additionalProperties, properties, ...rest } = own
  const reference = $ref ?? allOf[0]?.$ref
  return {
    ...rest,
    ...(oneOf !== undefined && { type: 'string' }),
    ...(reference !== undefined && { $ref: reference.replace(inV3, inV2) }),
    ...(items !== undefined && { items: swaggerSchema(items) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: swaggerSchema(additionalProperties),
    }),
    ...(properties !== undefined && { properties: each(properties) }),
  }
}

/** A parameter of an operation; the body is one too. */
type SwaggerParameter =
  | {
      readonly name: string
      readonly in: 'path' | 'query'
      readonly required?: boolean
      readonly type: string
      readonly uniqueItems: boolean
    }
  | {
      readonly name: 'body'
      readonly in: 'body'
      readonly required?: boolean
      readonly schema: Schema
    }

/** One method of a path. */
interface SwaggerOperation {
  readonly description?: string
  readonly consumes?: readonly string[]
  readonly produces: readonly string[]
  readonly schemes: readonly string[]
  readonly tags: readonly string[]
  readonly operationId: string
  readonly parameters?: readonly SwaggerParameter[]
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly schema?: Schema }>
  >
  readonly 'x-kubernetes-action'?: string
  readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind
}

/** One path: its own parameters and an operation per HTTP method. */
interface SwaggerPath extends Readonly<Partial<Record<Method, SwaggerOperation>>> {
  readonly parameters?: readonly SwaggerParameter[]
}

/** A document of OpenAPI v2, which was once called Swagger. */
export interface SwaggerDocument {
  readonly swagger: '2.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, SwaggerPath>>
  readonly definitions: Readonly<Record<string, Schema>>
  readonly securityDefinitions: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
}

const parameterOf = ({ schema, ...rest }: Parameter): SwaggerParameter => ({ ...rest, ...schema })

/** All media types of one body have the same schema. */
function schemaIn(content: Content): Schema | undefined {
  const schema = Object.values(content)[0]?.schema
  return schema && swaggerSchema(schema)
}

function bodyOf({ requestBody }: Operation): SwaggerParameter[] {
  const schema = requestBody && schemaIn(requestBody.content)
  if (schema === undefined) return []
  return [{ name: 'body', in: 'body', ...(requestBody?.required && { required: true }), schema }]
}

function responsesOf({ responses }: Operation): SwaggerOperation['responses'] {
  const converted = Object.entries(responses).map(([code, { description, content = {} }]) => {
    const schema = schemaIn(content)
    return [code, { description, ...(schema !== undefined && { schema }) }]
  })
  return Object.fromEntries(converted)
}

function operationOf(operation: Operation): SwaggerOperation {
  const { requestBody, responses, parameters = [], ...rest } = operation
  const all = [...bodyOf(operation), ...parameters.map(parameterOf)]
  return {
    ...rest,
    ...(requestBody !== undefined && { consumes: Object.keys(requestBody.content) }),
    produces: Object.keys(responses['200']?.content ?? {}),
    schemes: ['https'],
    ...(all.length > 0 && { parameters: all }),
    responses: responsesOf(operation),
  }
}

/** A path of OpenAPI v3 in the form of v2. */
function swaggerPath(item: PathItem): SwaggerPath {
  const operations = methods.flatMap((method) => {
    const operation = item[method]
    return operation === undefined ? [] : [[method, operationOf(operation)] as const]
  })
  return {
    ...Object.fromEntries(operations),
    ...(item.parameters !== undefined && { parameters: item.parameters.map(parameterOf) }),
  }
}

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
