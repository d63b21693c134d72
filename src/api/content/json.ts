import { isUtf8 } from 'node:buffer'
import { badRequest, type Work } from '../../core/index.ts'
import { maxJsonDepth, maxWork } from './limits.ts'

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

// In pieces, because the engine keeps a place to return to for each repetition.
const stringContent = /(?:[^"\\\0-\x1f]|\\(?:[bfnrt\\/"]|u[\da-fA-F]{4})){1,1000}/y
const digits = /\d{1,1000}/y
const spaces = /[ \t\r\n]{1,1000}/y

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
      this.#pass(stringContent)
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
    this.#pass(digits)
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
    this.#pass(spaces)
    return this.#text[this.#at] ?? ''
  }

  /** Passes over everything that matches: a body may be one string, number or space of megabytes. */
  #pass(pattern: RegExp): void {
    let before: number
    do {
      before = this.#at
      pattern.lastIndex = before
      pattern.test(this.#text)
      this.#at = Math.max(before, pattern.lastIndex)
    } while (this.#at > before)
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

const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  dot: 0x2e,
  e: 0x65,
  E: 0x45,
  zero: 0x30,
  nine: 0x39,
}
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

/** True for a dot, and for an E after a digit. */
function isFraction(char: number, text: string, at: number): boolean {
  if (char === code.dot) return true
  if (char !== code.e && char !== code.E) return false
  const before = text.charCodeAt(at - 1)
  return before >= code.zero && before <= code.nine
}

const tooDeep = (char: string) => badRequest(`invalid character '${char}' exceeded max depth`)

/** Outside of strings, so many characters are as much work as one token. */
const charactersPerToken = 64

/** One pass over what is outside of strings; counts the values before anything is made of them. */
function survey(text: string, work: Work, maxDepth: number): Omit<ParsedJson, 'value' | 'text'> {
  const maxTokens = work.left('tokens')
  let quoted = 0
  let depth = 0
  let keys = 0
  let tokens = 0
  let hasFraction = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === code.quote) {
      const end = endOfString(text, at + 1)
      quoted += end - at
      at = end
    } else if (char === code.colon) keys++
    else if (char === code.comma) {
      if (++tokens > maxTokens) break
    } else if (isOpening(char)) {
      tokens++
      if (++depth > maxDepth) throw tooDeep(text.charAt(at))
    } else if (isClosing(char)) depth--
    else if (isFraction(char, text, at)) hasFraction = true
  }
  // Spaces and digits without end are work as well.
  work.spend('tokens', tokens + Math.floor((text.length - quoted) / charactersPerToken))
  return { keys, hasFraction }
}

const halfPair = /\\u[dD][89a-fA-F]/
const escapes =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)/gs

/** As much work as one token. */
const escapesPerToken = 16

/** Half a surrogate pair cannot be stored as UTF-8: it becomes U+FFFD, as in Go. */
function wholePairs(text: string, work: Work): string {
  if (!halfPair.test(text)) return text
  let seen = 0
  return text.replace(escapes, (escape) => {
    if (++seen % escapesPerToken === 0) work.spend('tokens', 1)
    return escape.length === 6 && escape.startsWith('\\u') ? '\\ufffd' : escape
  })
}

/** Parses one JSON value with nothing after it. Fails with a 400 in the words that Go has for it. */
export function parseJsonText(
  sent: string,
  work: Work = maxWork(),
  maxDepth: number = maxJsonDepth,
): ParsedJson {
  const facts = survey(sent, work, maxDepth)
  const text = wholePairs(sent, work)
  try {
    return { value: JSON.parse(text), text, ...facts }
  } catch {
    throw badRequest(jsonFault(text))
  }
}

/** Parses the bytes of a JSON body. */
export const parseJson = (bytes: Uint8Array, work?: Work, maxDepth?: number): ParsedJson =>
  parseJsonText(utf8Text(bytes), work, maxDepth)
