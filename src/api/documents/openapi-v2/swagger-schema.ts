import type { Schema } from '../openapi-types.ts'

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
