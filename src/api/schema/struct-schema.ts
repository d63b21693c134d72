import { parseRow, type RowFacts } from './row.ts'
import type { FieldSchema, StructSchema } from './schema-types.ts'

/** Where a struct finds the other structs that it names. */
export type FindStruct = (name: string) => TableStruct

/** A row and the Go names of the inlined structs on the way to it. */
interface PlacedRow {
  readonly facts: RowFacts
  readonly embeddedIn: readonly string[]
}

function fieldOf({ facts, embeddedIn }: PlacedRow, find: FindStruct): FieldSchema {
  let struct: StructSchema | undefined
  return {
    ...facts,
    embeddedIn,
    // Looked up late, because structs may contain themselves and most are never asked for.
    get struct() {
      if (struct === undefined && facts.structName !== undefined) struct = find(facts.structName)
      return struct
    },
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
    this.#fields = placed.map((row) => fieldOf(row, options.find))
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
