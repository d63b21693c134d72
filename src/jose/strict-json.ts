import { maxJsonDepth } from './limits.ts'

/** A parsed JSON object; its members are read with `member`, which ignores inherited ones. */
export type JsonObject = Readonly<Record<string, unknown>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses bytes as a JSON object; undefined for other values, invalid UTF-8, and documents that parsers could read differently. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) && !isAmbiguous(text) ? value : undefined
  } catch {
    return undefined
  }
}

/** An own member of the object, never an inherited one. */
export const member = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The member names of an open object; undefined for an array. */
type Names = Set<string> | undefined

/** Whether valid JSON has duplicate members, `__proto__`, or too many levels. */
function isAmbiguous(text: string): boolean {
  const open: Names[] = []
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      const end = endOfString(text, at)
      if (isName(text, end) && !addName(open.at(-1), text.slice(at + 1, end))) return true
      at = end
    } else if (character === '{' || character === '[') {
      if (open.push(character === '{' ? new Set() : undefined) > maxJsonDepth) return true
    } else if (character === '}' || character === ']') open.pop()
  }
  return false
}

/** The index of the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text[before] === '\\') before--
    // After an even number of backslashes the quote is not escaped.
    if ((end - before) % 2 === 1) return end
  }
}

/** Whether a colon follows, so that the string is a member name. */
function isName(text: string, end: number): boolean {
  let next = end + 1
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t')
    next++
  return text[next] === ':'
}

/** Adds a member name; false for a duplicate in any escaping, and for `__proto__`. */
function addName(names: Names, escaped: string): boolean {
  const name: unknown = escaped.includes('\\') ? JSON.parse(`"${escaped}"`) : escaped
  if (typeof name !== 'string' || !names || names.has(name) || name === '__proto__') return false
  names.add(name)
  return true
}
