import { enums } from './generated/tables.ts'
import type {
  FieldSchema,
  FieldType,
  PatchStrategy,
  StructSchema,
  Topology,
} from './schema-types.ts'

/** What one row of the tables says; `structName` and `inline` are resolved by the struct. */
interface RowFacts extends Omit<FieldSchema, 'struct' | 'embeddedIn'> {
  readonly structName: string | undefined
  readonly inline: boolean
}

const scalarTypes: Readonly<Record<string, FieldType>> = {
  string: 'string',
  strings: 'string',
  int32: 'integer',
  int64: 'integer',
  bool: 'boolean',
  bytes: 'bytes',
  time: 'time',
  microtime: 'microtime',
  quantity: 'quantity',
  intstr: 'intOrString',
  any: 'any',
}

const bitsOf: Readonly<Record<string, 32 | 64>> = { int32: 32, int64: 64 }

const splitList = (text: string | undefined): readonly string[] =>
  text === undefined ? [] : text.split(',')

const isTopology = (text: string | undefined): text is Topology =>
  text === 'atomic' || text === 'set' || text === 'map' || text === 'granular'

const isStrategy = (text: string): text is PatchStrategy =>
  text === 'merge' || text === 'replace' || text === 'retainKeys'

function parseDefault(text: string | undefined): FieldSchema['defaultValue'] {
  if (text === undefined) return undefined
  const value: unknown = JSON.parse(text)
  const scalar = ['string', 'number', 'boolean'].includes(typeof value)
  return scalar ? (value as string | number | boolean) : undefined
}

function defaultGoType(base: string, list: boolean, map: boolean): string {
  const dot = base.lastIndexOf('.')
  const scalar = { bytes: '[]uint8', strings: '[]string' }[base] ?? base
  const element = dot < 0 ? scalar : `v1.${base.slice(dot + 1)}`
  if (map) return `map[string]${element}`
  return list && base !== 'strings' ? `[]${element}` : element
}

/** Reads one row: name, number, type, then marks, separated by spaces. */
function parseRow(row: string): RowFacts {
  const [name = '', number = '', type = '', ...marks] = row.split(' ')
  const has = (mark: string) => marks.includes(mark)
  const valueOf = (mark: string) =>
    marks.find((m) => m.startsWith(`${mark}=`))?.slice(mark.length + 1)
  const pointer = type.startsWith('*')
  const shape = pointer ? type.slice(1) : type
  const map = shape.startsWith('{}')
  const base = shape.replace(/^(\[\]|\{\})/, '')
  const list = shape.startsWith('[]') || base === 'strings'
  const listType = valueOf('list')
  const mapType = valueOf('map')
  const enumName = valueOf('enum')
  return {
    jsonName: name,
    number: Number(number),
    type: scalarTypes[base] ?? 'object',
    bits: bitsOf[base],
    list,
    map,
    pointer,
    wrapped: base === 'strings',
    structName: base in scalarTypes ? undefined : base,
    inline: has('inline'),
    required: has('required'),
    omitEmpty: has('omitempty'),
    omitZero: has('omitzero'),
    mergeKey: valueOf('mergeKey'),
    patchStrategy: splitList(valueOf('patch')).filter(isStrategy),
    listType: isTopology(listType) ? listType : undefined,
    listMapKeys: splitList(valueOf('listKeys')),
    mapType: isTopology(mapType) ? mapType : undefined,
    goType: valueOf('go') ?? defaultGoType(base, list, map),
    enumValues: enumName === undefined ? undefined : enums[enumName],
    defaultValue: parseDefault(valueOf('default')),
  }
}

/** Where a struct finds the other structs that it names. */
export type FindStruct = (name: string) => TableStruct

/** A row and the Go names of the inlined structs on the way to it. */
interface PlacedRow {
  readonly facts: RowFacts
  readonly embeddedIn: readonly string[]
}

/** One shape for all fields, so that the loops over them stay fast. */
class TableField implements FieldSchema {
  readonly jsonName: FieldSchema['jsonName']
  readonly type: FieldSchema['type']
  readonly list: FieldSchema['list']
  readonly map: FieldSchema['map']
  readonly pointer: FieldSchema['pointer']
  readonly omitEmpty: FieldSchema['omitEmpty']
  readonly omitZero: FieldSchema['omitZero']
  readonly bits: FieldSchema['bits']
  readonly wrapped: FieldSchema['wrapped']
  readonly number: FieldSchema['number']
  readonly goType: FieldSchema['goType']
  readonly embeddedIn: FieldSchema['embeddedIn']
  readonly #facts: RowFacts
  readonly #find: FindStruct
  #struct: StructSchema | undefined

  constructor({ facts, embeddedIn }: PlacedRow, find: FindStruct) {
    this.jsonName = facts.jsonName
    this.type = facts.type
    this.list = facts.list
    this.map = facts.map
    this.pointer = facts.pointer
    this.omitEmpty = facts.omitEmpty
    this.omitZero = facts.omitZero
    this.bits = facts.bits
    this.wrapped = facts.wrapped
    this.number = facts.number
    this.goType = facts.goType
    this.embeddedIn = embeddedIn
    this.#facts = facts
    this.#find = find
  }

  /** Looked up late, because structs may contain themselves and most are never asked for. */
  get struct(): StructSchema | undefined {
    if (this.#struct === undefined && this.#facts.structName !== undefined)
      this.#struct = this.#find(this.#facts.structName)
    return this.#struct
  }

  get mergeKey() {
    return this.#facts.mergeKey
  }

  get patchStrategy() {
    return this.#facts.patchStrategy
  }

  get required() {
    return this.#facts.required
  }

  get listType() {
    return this.#facts.listType
  }

  get listMapKeys() {
    return this.#facts.listMapKeys
  }

  get mapType() {
    return this.#facts.mapType
  }

  get enumValues() {
    return this.#facts.enumValues
  }

  get defaultValue() {
    return this.#facts.defaultValue
  }
}

/** A struct that is inlined in JSON but is a message of its own in protobuf. */
export interface InlinedStruct {
  readonly number: number
  readonly struct: TableStruct
}

/** A struct as its rows of the tables say. */
export class TableStruct implements StructSchema {
  readonly name: string
  readonly shortName: string
  readonly atomic: boolean
  readonly inlined: readonly InlinedStruct[]
  readonly size: number
  readonly #rows: readonly PlacedRow[]
  readonly #fields: readonly FieldSchema[]
  readonly #byName: ReadonlyMap<string, FieldSchema>
  readonly #byNumber: ReadonlyMap<number, FieldSchema>

  constructor(
    name: string,
    rows: readonly string[],
    options: { readonly atomic: boolean; readonly find: FindStruct },
  ) {
    this.name = name
    this.shortName = name.slice(name.lastIndexOf('.') + 1)
    this.atomic = options.atomic
    const placed: PlacedRow[] = []
    const inlined: InlinedStruct[] = []
    for (const facts of rows.map(parseRow)) {
      if (facts.inline && facts.structName !== undefined) {
        const struct = options.find(facts.structName)
        inlined.push({ number: facts.number, struct })
        for (const row of struct.#rows)
          placed.push({ facts: row.facts, embeddedIn: [facts.jsonName, ...row.embeddedIn] })
      } else placed.push({ facts, embeddedIn: [] })
    }
    this.inlined = inlined
    this.#rows = placed
    this.#fields = placed.map((row) => new TableField(row, options.find))
    this.size = this.#fields.length
    this.#byName = new Map(this.#fields.map((field) => [field.jsonName, field]))
    const own = this.#fields.filter((field) => field.embeddedIn.length === 0)
    this.#byNumber = new Map(own.map((field) => [field.number, field]))
  }

  field(jsonName: string): FieldSchema | undefined {
    return this.#byName.get(jsonName)
  }

  fields(): readonly FieldSchema[] {
    return this.#fields
  }

  /** The field with that number in this struct's own message, inlined structs not included. */
  fieldByNumber(number: number): FieldSchema | undefined {
    return this.#byNumber.get(number)
  }
}
