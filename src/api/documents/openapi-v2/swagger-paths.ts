import {
  type Content,
  methods,
  type Operation,
  type Parameter,
  type PathItem,
  type Schema,
} from '../openapi-types.ts'
import { swaggerSchema } from './swagger-schema.ts'
import type { SwaggerOperation, SwaggerParameter, SwaggerPath } from './swagger-types.ts'

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
export function swaggerPath(item: PathItem): SwaggerPath {
  const operations = methods.flatMap((method) => {
    const operation = item[method]
    return operation === undefined ? [] : [[method, operationOf(operation)] as const]
  })
  return {
    ...Object.fromEntries(operations),
    ...(item.parameters !== undefined && { parameters: item.parameters.map(parameterOf) }),
  }
}
