import { isUtf8 } from 'node:buffer'
import { badRequest } from '../../core/index.ts'

/**
 * Says where a text stops being JSON, in the words of Go's scanner. Only asked when `JSON.parse` has
 * refused the text, because its own messages differ from one Node.js to the next.
 */
function jsonFault(text: string): string {
  const scanner = new FaultScanner(text)
  try {
    scanner.document()
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
  return 'invalid JSON'
}

class Fault extends Error {}

const unexpectedEnd = () => new Fault('unexpected end of JSON input')

/** One character as Go quotes it; of a longer one only the first byte, as Go has it. */
function shown(char: string): string {
  if (char === "'") return `'\\''`
  if (char === '"') return `'"'`
  const first = String.fromCharCode(Buffer.from(char)[0] ?? 0)
  const quoted = JSON.stringify(first).slice(1, -1)
  return `'${quoted.replace(/^\\u00/, '\\x')}'`
}

class FaultScanner {
  readonly #text: string
  #at = 0
  /** The closing brackets still owed. */
  readonly #open: ('}' | ']')[] = []

  constructor(text: string) {
    this.#text = text
  }

  document(): void {
    this.#value()
    while (this.#open.length > 0) this.#afterValue()
    if (this.#next() !== '') this.#expected('after top-level value')
  }

  /** Reads a scalar or opens an object or array, up to its first value. */
  #value(): void {
    const char = this.#next()
    if (char === '{') this.#openObject()
    else if (char === '[') this.#openArray()
    else if (char === '"') this.#string()
    else if (char === '-' || /\d/.test(char)) this.#number()
    else this.#literal(char)
  }

  #openObject(): void {
    this.#at++
    this.#open.push('}')
    if (this.#next() === '}') this.#close()
    else this.#member()
  }

  #openArray(): void {
    this.#at++
    this.#open.push(']')
    if (this.#next() === ']') this.#close()
    else this.#value()
  }

  #member(): void {
    if (this.#next() !== '"') this.#expected('looking for beginning of object key string')
    this.#string()
    if (this.#next() !== ':') this.#expected('after object key')
    this.#at++
    this.#value()
  }

  #afterValue(): void {
    const closing = this.#open.at(-1)
    const char = this.#next()
    if (char === closing) this.#close()
    else if (char !== ',')
      this.#expected(closing === '}' ? 'after object key:value pair' : 'after array element')
    else {
      this.#at++
      if (closing === '}') this.#member()
      else this.#value()
    }
  }

  #close(): void {
    this.#at++
    this.#open.pop()
  }

  #string(): void {
    this.#at++
    for (;;) {
      if (this.#at >= this.#text.length) throw unexpectedEnd()
      const char = this.#here()
      if (char < ' ') this.#fail('in string literal')
      this.#at++
      if (char === '"') return
      if (char === '\\') this.#escape()
    }
  }

  #escape(): void {
    const char = this.#here()
    if (!'bfnrt\\/"u'.includes(char)) this.#fail('in string escape code')
    this.#at++
    for (let left = char === 'u' ? 4 : 0; left > 0; left--) {
      if (!/[0-9a-fA-F]/.test(this.#here())) this.#fail('in \\u hexadecimal character escape')
      this.#at++
    }
  }

  #number(): void {
    if (this.#here() === '-') this.#at++
    if (this.#here() === '0') this.#at++
    else this.#digits('in numeric literal')
    if (this.#text[this.#at] === '.') {
      this.#at++
      this.#digits('after decimal point in numeric literal')
    }
    if (/[eE]/.test(this.#text[this.#at] ?? '')) {
      this.#at++
      if (/[-+]/.test(this.#here())) this.#at++
      this.#digits('in exponent of numeric literal')
    }
  }

  #digits(where: string): void {
    if (!/\d/.test(this.#here())) this.#fail(where)
    while (/\d/.test(this.#text[this.#at] ?? '')) this.#at++
  }

  #literal(first: string): void {
    const word = ['true', 'false', 'null'].find((w) => w[0] === first)
    if (word === undefined) this.#expected('looking for beginning of value')
    for (const expected of word) {
      if (this.#here() !== expected) this.#fail(`in literal ${word} (expecting ${shown(expected)})`)
      this.#at++
    }
  }

  /** The character here; inside of a token Go takes the end of the text for a space. */
  #here(): string {
    return this.#text[this.#at] ?? ' '
  }

  /** The next character that is no space, or nothing at the end of the text. */
  #next(): string {
    while (/[ \t\r\n]/.test(this.#text[this.#at] ?? '')) this.#at++
    return this.#text[this.#at] ?? ''
  }

  /** Fails between tokens, where the end of the text is a fault of its own. */
  #expected(where: string): never {
    if (this.#at >= this.#text.length) throw unexpectedEnd()
    this.#fail(where)
  }

  #fail(where: string): never {
    throw new Fault(`invalid character ${shown(this.#here())} ${where}`)
  }
}

/** How deep a body may nest unless the caller says otherwise. */
const defaultMaxDepth = 1000

/** A JSON text and what it says. */
export interface ParsedJson {
  readonly value: unknown
  readonly text: string
  /** How many keys its objects have together, duplicates counted. */
  readonly keys: number
  /** True when some number is written with a fraction or an exponent. */
  readonly hasFraction: boolean
}

/** Turns the bytes of a body into text; anything but UTF-8 is a 400. */
export function utf8Text(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw badRequest('the body of the request is not valid UTF-8')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

const code = { quote: 0x22, colon: 0x3a, dot: 0x2e, e: 0x65, E: 0x45, zero: 0x30, nine: 0x39 }
const isOpening = (char: number): boolean => char === 0x7b || char === 0x5b
const isClosing = (char: number): boolean => char === 0x7d || char === 0x5d

/** Index of the quote that ends the string whose content starts at `from`, or the text's length. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

function isExponent(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  return before >= code.zero && before <= code.nine
}

/** One pass over what is outside of strings. */
function survey(text: string, maxDepth: number): Omit<ParsedJson, 'value' | 'text'> {
  let depth = 0
  let keys = 0
  let hasFraction = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === code.quote) at = endOfString(text, at + 1)
    else if (char === code.colon) keys++
    else if (isOpening(char)) {
      if (++depth > maxDepth)
        throw badRequest(`invalid character '${text.charAt(at)}' exceeded max depth`)
    } else if (isClosing(char)) depth--
    else if (char === code.dot) hasFraction = true
    else if ((char === code.e || char === code.E) && isExponent(text, at)) hasFraction = true
  }
  return { keys, hasFraction }
}

const halfPair = /\\u[dD][89a-fA-F]/
const escapes =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)/gs

/** Half a surrogate pair cannot be stored as UTF-8: it becomes U+FFFD, as in Go. */
const wholePairs = (text: string): string =>
  halfPair.test(text)
    ? text.replace(escapes, (escape) =>
        escape.length === 6 && escape.startsWith('\\u') ? '\\ufffd' : escape,
      )
    : text

/** Parses one JSON value with nothing after it. Fails with a 400 in the words that Go has for it. */
export function parseJsonText(sent: string, maxDepth: number = defaultMaxDepth): ParsedJson {
  const facts = survey(sent, maxDepth)
  const text = wholePairs(sent)
  try {
    return { value: JSON.parse(text), text, ...facts }
  } catch {
    throw badRequest(jsonFault(text))
  }
}

/** Parses the bytes of a JSON body. */
export const parseJson = (bytes: Uint8Array, maxDepth?: number): ParsedJson =>
  parseJsonText(utf8Text(bytes), maxDepth)
