import type { GroupVersionKind } from '../../schema/index.ts'
import type { Method, Schema } from '../openapi-types.ts'

/** A parameter of an operation; the body is one too. */
export type SwaggerParameter =
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
export interface SwaggerOperation {
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
export interface SwaggerPath extends Readonly<Partial<Record<Method, SwaggerOperation>>> {
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
