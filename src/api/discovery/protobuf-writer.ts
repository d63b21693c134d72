/** Writes a JSON value as one or more fields of a protobuf message. */
export type Writer = (value: unknown) => Buffer

/** Protobuf's wire types: a number, and bytes after their length. */
const wire = { varint: 0, bytes: 2 }

function varint(value: number): Buffer {
  const out: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) out.push((rest & 0x7f) | 0x80)
  out.push(rest)
  return Buffer.from(out)
}

const tag = (field: number, type: number): Buffer => varint(field * 8 + type)

const withLength = (field: number, content: Buffer): Buffer =>
  Buffer.concat([tag(field, wire.bytes), varint(content.length), content])

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
    return withLength(field, Buffer.from(value))
  }

/** A boolean; false is what protobuf leaves out. */
export const flag =
  (field: number): Writer =>
  (value) => {
    if (typeof value !== 'boolean') throw mistake(value, 'a boolean')
    return value ? Buffer.concat([tag(field, wire.varint), varint(1)]) : Buffer.alloc(0)
  }

/** A message whose content another writer writes. */
export const inside =
  (field: number, content: Writer): Writer =>
  (value) =>
    withLength(field, content(value))

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
    const pairs = entriesOf(object).map(([name, inner]) =>
      Buffer.concat([text(1)(name), inside(2, value)(inner)]),
    )
    return Buffer.concat(pairs.map((pair) => withLength(field, pair)))
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
