import { isUtf8 } from 'node:buffer'
import { badRequest } from '../../core/index.ts'
import { jsonFault } from './json-fault.ts'

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
