import { elementType, typeMismatch } from './check-structure.ts'
import type { FieldSchema, StructSchema } from './schema-types.ts'

/** As many strict errors as Kubernetes reports at most. */
const maxErrors = 100

/**
 * Finds unknown and duplicate fields in the text of a value, in the order of the text, and throws
 * when an integer is written as a fraction. `JSON.parse` hides both, so this reads the text itself;
 * it must be valid JSON and is only looked into as deep as the struct goes.
 */
export function strictScan(text: string, schema: StructSchema): string[] {
  const scan = new Scan(text)
  scan.value(undefined, schema, '')
  return [...scan.errors]
}

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c

const isSpace = (code: number): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

const endsLiteral = (code: number): boolean =>
  isSpace(code) || code === comma || code === closeBrace || code === closeBracket

class Scan {
  readonly errors = new Set<string>()
  readonly #text: string
  #at = 0
  readonly #trail: FieldSchema[] = []

  constructor(text: string) {
    this.#text = text
  }

  /** Reads one value: of `field` as a whole, or of `schema` when the value is a struct. */
  value(field: FieldSchema | undefined, schema: StructSchema | undefined, path: string): void {
    const code = this.#peek()
    if (code === openBrace && field?.map) this.#map(field, path)
    else if (code === openBracket && field?.list && !field.map) this.#list(field, path)
    else if (code === openBrace && schema !== undefined) this.#struct(schema, path)
    else this.#skip()
  }

  #struct(schema: StructSchema, path: string): void {
    const seen = new Set<string>()
    this.#members((key) => {
      const field = schema.field(key)
      const inner = path === '' ? key : `${path}.${key}`
      if (field === undefined) {
        this.#report('unknown', inner)
        this.#skip()
        return
      }
      if (seen.has(key)) this.#report('duplicate', inner)
      seen.add(key)
      this.#trail.push(field)
      if (field.type === 'integer') this.#integers(field, schema)
      else this.value(field, field.struct, inner)
      this.#trail.pop()
    })
  }

  #map(field: FieldSchema, path: string): void {
    const seen = new Set<string>()
    this.#members((key) => {
      const inner = `${path}.${key}`
      if (seen.has(key)) this.#report('duplicate', inner)
      seen.add(key)
      this.value(undefined, field.struct, inner)
    })
  }

  #list(field: FieldSchema, path: string): void {
    this.#at++
    for (let index = 0; this.#peek() !== closeBracket; index++) {
      this.value(undefined, field.struct, `${path}[${index}]`)
      if (this.#peek() === comma) this.#at++
    }
    this.#at++
  }

  #members(visit: (key: string) => void): void {
    this.#at++
    while (this.#peek() !== closeBrace) {
      const start = this.#at
      this.#skip()
      const key: unknown = JSON.parse(this.#text.slice(start, this.#at))
      this.#peek()
      this.#at++
      visit(String(key))
      if (this.#peek() === comma) this.#at++
    }
    this.#at++
  }

  /** Go reads only plain digits as an integer; `1.0` and `1e3` are none to it. */
  #integers(field: FieldSchema, owner: StructSchema): void {
    this.#peek()
    const start = this.#at
    this.#skip()
    const sent = this.#text.slice(start, this.#at)
    const found = sent.match(/-?\d[\d.eE+-]*/g)?.find((number) => /[.eE]/.test(number))
    if (found === undefined) return
    const goType = field.list || field.map ? elementType(field.goType) : field.goType
    throw typeMismatch(`number ${found}`, goType, { owner, trail: this.#trail })
  }

  #report(what: 'unknown' | 'duplicate', path: string): void {
    if (this.errors.size < maxErrors) this.errors.add(`${what} field ${JSON.stringify(path)}`)
  }

  /** The next character that is no space, not consumed. */
  #peek(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (isSpace(code)) code = this.#text.charCodeAt(++this.#at)
    return code
  }

  /** Passes over one value of any kind and depth. */
  #skip(): void {
    let depth = 0
    do {
      const code = this.#peek()
      if (code === quote) this.#skipString()
      else if (code === openBrace || code === openBracket) {
        depth++
        this.#at++
      } else if (code === closeBrace || code === closeBracket) {
        depth--
        this.#at++
      } else if (code === comma || code === 0x3a) this.#at++
      else this.#skipLiteral()
    } while (depth > 0 && this.#at < this.#text.length)
  }

  #skipLiteral(): void {
    while (this.#at < this.#text.length && !endsLiteral(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #skipString(): void {
    this.#at++
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === backslash) this.#at += 2
      else if (code === quote || Number.isNaN(code)) break
      else this.#at++
    }
    this.#at++
  }
}
