import type { GroupVersionKind } from '../schema/index.ts'

/** A JSON schema in the form that OpenAPI has. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly default?: string | number | boolean
  readonly enum?: readonly string[]
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly allOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
  readonly [extension: `x-${string}`]: unknown
}

/** A parameter in the path or in the query. */
export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required?: boolean
  readonly schema: { readonly type: string; readonly uniqueItems: boolean }
}

/** A schema per media type. */
export type Content = Readonly<Record<string, { readonly schema: Schema }>>

/** One method of a path. */
export interface Operation {
  readonly description?: string
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content; readonly required?: boolean }
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Content }>
  >
  readonly 'x-kubernetes-action'?: string
  readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind
}

/** The methods that operations have. */
export const methods = ['get', 'put', 'post', 'delete', 'patch'] as const

/** One of the methods that operations have. */
export type Method = (typeof methods)[number]

/** One path: its own parameters and an operation per HTTP method. */
export interface PathItem extends Readonly<Partial<Record<Method, Operation>>> {
  readonly parameters?: readonly Parameter[]
}

/** A document of OpenAPI v3 as far as it is used here. */
export interface OpenapiDocument {
  readonly openapi: '3.0.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components?: { readonly schemas: Readonly<Record<string, Schema>> }
}

const packages: Readonly<Record<string, string>> = {
  'meta/v1': 'io.k8s.apimachinery.pkg.apis.meta.v1',
  runtime: 'io.k8s.apimachinery.pkg.runtime',
}

/** The name of a struct in OpenAPI, for example `io.k8s.api.core.v1.Pod`. */
export function openapiName(structName: string): string {
  const dot = structName.lastIndexOf('.')
  const folder = structName.slice(0, dot)
  const prefix = packages[folder] ?? `io.k8s.api.${folder.replace('/', '.')}`
  return `${prefix}.${structName.slice(dot + 1)}`
}

/** A reference to a schema of the same document. */
export const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** A path that is no resource and can be read, as OpenAPI describes it. */
export interface DescribedPath {
  /** Without a slash at its end. */
  readonly path: string
  readonly tag: string
  readonly description: string
  readonly operationId: string
  readonly contentType: string
}

/** The OpenAPI v3 document of one such path; Kubernetes names it with a slash at its end, so generated clients ask for that. */
export function openapiOfPath(
  { path, tag, description, operationId, contentType }: DescribedPath,
  serverVersion: string,
): OpenapiDocument {
  const content = { [contentType]: { schema: { type: 'string' } } }
  const responses = {
    '200': { description: 'OK', content },
    '401': { description: 'Unauthorized' },
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Sallyport', version: serverVersion },
    paths: { [`${path}/`]: { get: { tags: [tag], description, operationId, responses } } },
  }
}
