import { parseRow, type RowFacts } from './row.ts'
import type { FieldSchema, StructSchema } from './schema-types.ts'

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
