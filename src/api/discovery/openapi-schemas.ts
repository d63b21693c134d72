import type { FieldSchema, FieldType, GroupVersionKind, StructSchema } from '../schema/index.ts'
import { fieldDescription, kindDescription } from './openapi-descriptions.ts'
import { openapiName, refTo, type Schema } from './openapi-types.ts'

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const quantity = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const intOrString = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'

/** Types that have a schema of their own although they are no structs. */
const specialSchemas: Readonly<Record<string, Schema>> = {
  [quantity]: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  [intOrString]: { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
  [`${meta}.Time`]: { type: 'string', format: 'date-time' },
  [`${meta}.MicroTime`]: { type: 'string', format: 'date-time' },
  [`${meta}.FieldsV1`]: { type: 'object' },
  [`${meta}.Patch`]: { type: 'object' },
  'io.k8s.apimachinery.pkg.runtime.RawExtension': { type: 'object' },
}

/** The schemas of one document: what was asked for and everything that it refers to. */
export class SchemaCollection {
  readonly #schemas = new Map<string, Schema>()
  readonly #kindsByStruct: ReadonlyMap<string, readonly GroupVersionKind[]>

  constructor(kindsByStruct: ReadonlyMap<string, readonly GroupVersionKind[]>) {
    this.#kindsByStruct = kindsByStruct
  }

  /** Adds a struct and all that it contains; returns a reference to it. */
  struct(struct: StructSchema): Schema {
    const name = openapiName(struct.name)
    if (!this.#schemas.has(name)) {
      this.#schemas.set(name, {})
      this.#schemas.set(name, this.#structSchema(struct))
    }
    return refTo(name)
  }

  /** Adds a schema that somebody else has made. */
  own(name: string, schema: Schema): void {
    this.#schemas.set(name, schema)
  }

  /** Adds one of the types that are no structs; returns a reference to it. */
  special(name: string): Schema {
    const schema = specialSchemas[name]
    if (schema === undefined) throw new Error(`no schema for ${name}`)
    this.#schemas.set(name, schema)
    return refTo(name)
  }

  sorted(): Record<string, Schema> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #structSchema(struct: StructSchema): Schema {
    const fields = [...struct.fields()]
    const required = fields.filter((field) => field.required).map((field) => field.jsonName)
    const kinds = this.#kindsByStruct.get(struct.name)
    const description = kindDescription(struct.name)
    return {
      ...(description !== undefined && { description }),
      type: 'object',
      ...(required.length > 0 && { required }),
      properties: Object.fromEntries(
        fields.map((field) => [field.jsonName, this.#property(struct, field)]),
      ),
      ...(struct.atomic && { 'x-kubernetes-map-type': 'atomic' }),
      ...(kinds !== undefined && { 'x-kubernetes-group-version-kind': kinds }),
    }
  }

  #property(struct: StructSchema, field: FieldSchema): Schema {
    const description = fieldDescription(struct.name, field.jsonName)
    const extras: Schema = {
      ...(description !== undefined && { description }),
      ...(field.defaultValue !== undefined && { default: field.defaultValue }),
      ...mergeRules(field),
    }
    return withExtras(this.#fieldType(field), extras)
  }

  #fieldType(field: FieldSchema): Schema {
    const element = this.#elementType(field)
    const listed = field.list ? { type: 'array', items: element } : element
    return field.map ? { type: 'object', additionalProperties: listed } : listed
  }

  #elementType(field: FieldSchema): Schema {
    if (field.struct !== undefined) return this.struct(field.struct)
    const special = specialName(field)
    if (special !== undefined) return this.special(special)
    return {
      ...scalarTypes[field.type],
      ...(field.bits !== undefined && { format: `int${field.bits}` }),
      ...(field.enumValues !== undefined && { enum: field.enumValues }),
    }
  }
}

/** A reference cannot have anything beside it, so it moves into `allOf` when it must. */
function withExtras(type: Schema, extras: Schema): Schema {
  const moved = '$ref' in type && Object.keys(extras).length > 0 ? { allOf: [type] } : type
  return { ...moved, ...extras }
}

function mergeRules(field: FieldSchema): Schema {
  return {
    ...(field.listType !== undefined && { 'x-kubernetes-list-type': field.listType }),
    ...(field.listMapKeys.length > 0 && { 'x-kubernetes-list-map-keys': field.listMapKeys }),
    ...(field.mapType !== undefined && { 'x-kubernetes-map-type': field.mapType }),
    ...(field.mergeKey !== undefined && { 'x-kubernetes-patch-merge-key': field.mergeKey }),
    ...(field.patchStrategy.length > 0 && {
      'x-kubernetes-patch-strategy': field.patchStrategy.join(','),
    }),
  }
}

const scalarTypes: Readonly<Partial<Record<FieldType, Schema>>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  number: { type: 'number', format: 'double' },
  boolean: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
}

function specialName({ type, goType }: FieldSchema): string | undefined {
  if (type === 'time') return `${meta}.Time`
  if (type === 'microtime') return `${meta}.MicroTime`
  if (type === 'quantity') return quantity
  if (type === 'intOrString') return intOrString
  if (type !== 'any') return undefined
  return goType === 'v1.FieldsV1'
    ? `${meta}.FieldsV1`
    : 'io.k8s.apimachinery.pkg.runtime.RawExtension'
}
