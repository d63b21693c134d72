import { bytesField, uintField } from '../../grpc/index.ts'
import type { SwaggerDocument } from './openapi-v2.ts'

/** Writes a JSON value as one or more fields of a protobuf message. */
export type Writer = (value: unknown) => Buffer

/** Our own documents are written, so a value of another type is our own mistake. */
const mistake = (value: unknown, wanted: string): Error =>
  new Error(`cannot write ${JSON.stringify(value)} as ${wanted}`)

function entriesOf(value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null) throw mistake(value, 'a message')
  return Object.entries(value)
}

/** A string. */
export const text =
  (field: number): Writer =>
  (value) => {
    if (typeof value !== 'string') throw mistake(value, 'a string')
    return bytesField(field, Buffer.from(value))
  }

/** A boolean; false is what protobuf leaves out. */
export const flag =
  (field: number): Writer =>
  (value) => {
    if (typeof value !== 'boolean') throw mistake(value, 'a boolean')
    return uintField(field, value ? 1 : 0)
  }

/** A message whose content another writer writes. */
export const inside =
  (field: number, content: Writer): Writer =>
  (value) =>
    bytesField(field, content(value))

/** A list: the field once for every item. */
export const each =
  (item: Writer): Writer =>
  (value) => {
    if (!Array.isArray(value)) throw mistake(value, 'a list')
    return Buffer.concat(value.map((one) => item(one)))
  }

/** An object with any keys: once for each a message of its key (1) and its value (2). */
export const named =
  (field: number, value: Writer): Writer =>
  (object) => {
    const entries = entriesOf(object).map(([name, inner]) =>
      bytesField(field, text(1)(name), inside(2, value)(inner)),
    )
    return Buffer.concat(entries)
  }

/** An object with known keys, and with extensions (`x-...`) where `extensions` writes them. */
export const message =
  (fields: Readonly<Record<string, Writer>>, extensions?: Writer): Writer =>
  (object) => {
    const values = new Map(entriesOf(object))
    const written = Object.entries(fields).flatMap(([name, write]) => {
      const value = values.get(name)
      values.delete(name)
      return value === undefined ? [] : [write(value)]
    })
    if (values.size === 0) return Buffer.concat(written)
    const foreign = [...values.keys()].find((name) => !name.startsWith('x-'))
    if (extensions === undefined || foreign !== undefined)
      throw mistake(Object.fromEntries(values), 'fields of a message')
    return Buffer.concat([...written, extensions(Object.fromEntries(values))])
  }

/** `Any` holds YAML, and JSON is YAML. */
const anything: Writer = (value) => text(2)(JSON.stringify(value))

/** `Schema`, which contains itself. */
const schema: Writer = message(
  {
    $ref: text(1),
    format: text(2),
    description: text(4),
    required: each(text(19)),
    enum: each(inside(20, anything)),
    additionalProperties: inside(21, (value) => inside(1, schema)(value)),
    type: inside(22, text(1)),
    items: inside(23, (value) => inside(1, schema)(value)),
    properties: inside(25, (value) => named(1, schema)(value)),
  },
  named(31, anything),
)

/** `BodyParameter`, `PathParameterSubSchema` and `QueryParameterSubSchema`, each inside its choice. */
const parameters: Readonly<Record<string, Writer>> = {
  body: inside(
    1,
    message({ name: text(2), in: text(3), required: flag(4), schema: inside(5, schema) }),
  ),
  path: inside(
    2,
    inside(
      4,
      message({
        required: flag(1),
        in: text(2),
        name: text(4),
        type: text(5),
        uniqueItems: flag(19),
      }),
    ),
  ),
  query: inside(
    2,
    inside(
      3,
      message({
        required: flag(1),
        in: text(2),
        name: text(4),
        type: text(6),
        uniqueItems: flag(20),
      }),
    ),
  ),
}

/** `Parameter`: the message depends on where the parameter is. */
function parameter(value: unknown): Buffer {
  const place = typeof value === 'object' && value !== null && 'in' in value ? value.in : undefined
  const write = parameters[String(place)]
  if (write === undefined) throw new Error(`a parameter cannot be in ${String(place)}`)
  return write(value)
}

const response = message({ description: text(1), schema: inside(2, inside(1, schema)) })

const operation = message(
  {
    tags: each(text(1)),
    description: text(3),
    operationId: text(5),
    produces: each(text(6)),
    consumes: each(text(7)),
    parameters: each(inside(8, inside(1, parameter))),
    responses: inside(9, named(1, inside(1, response))),
    schemes: each(text(10)),
  },
  named(13, anything),
)

const pathItem = message({
  get: inside(2, operation),
  put: inside(3, operation),
  post: inside(4, operation),
  delete: inside(5, operation),
  patch: inside(8, operation),
  parameters: each(inside(9, inside(1, parameter))),
})

const apiKey = message({ type: text(1), name: text(2), in: text(3), description: text(4) })

const document = message({
  swagger: text(1),
  info: inside(2, message({ title: text(1), version: text(2) })),
  paths: inside(8, named(2, pathItem)),
  definitions: inside(9, named(1, schema)),
  security: each(inside(12, named(1, each(text(1))))),
  securityDefinitions: inside(13, named(1, inside(2, apiKey))),
})

/** The document as the message `openapi.v2.Document` of gnostic, which is the form that kubectl asks for. */
export const encodeSwagger = (swagger: SwaggerDocument): Buffer => document(swagger)
