/** An object as JSON had it; read its members with `member`, never by their names alone. */
export type JsonObject = Readonly<Record<string, unknown>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads bytes as one JSON object; undefined for anything else, for bad UTF-8 and for what two readers could take in two ways. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) && !isAmbiguous(text) ? value : undefined
  } catch {
    return undefined
  }
}

/** A member that the object itself has, not one that every object inherits. */
export const member = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Nobody needs more, and readers that recurse have a stack. */
const deepest = 32

/** The names of an object that is open; an array has none. */
type Names = Set<string> | undefined

/** Looks for members that come twice or change prototypes, and for depth; the text is known to be JSON. */
function isAmbiguous(text: string): boolean {
  const open: Names[] = []
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (sign === '"') {
      const end = endOfString(text, at)
      if (isName(text, end) && !takesName(open.at(-1), text.slice(at + 1, end))) return true
      at = end
    } else if (sign === '{' || sign === '[') {
      if (open.push(sign === '{' ? new Set() : undefined) > deepest) return true
    } else if (sign === '}' || sign === ']') open.pop()
  }
  return false
}

/** Where the string that begins at `start` has its closing quote. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text[before] === '\\') before--
    // Escapes go in pairs of signs, so an even number of backslashes leaves the quote alone.
    if ((end - before) % 2 === 1) return end
  }
}

/** Whether a colon follows, and so the string that ends here names a member. */
function isName(text: string, end: number): boolean {
  let next = end + 1
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t')
    next++
  return text[next] === ':'
}

/** Notes a name; false for one that was there before, in whatever spelling, or that no object may have. */
function takesName(names: Names, spelled: string): boolean {
  const name: unknown = spelled.includes('\\') ? JSON.parse(`"${spelled}"`) : spelled
  if (typeof name !== 'string' || !names || names.has(name) || name === '__proto__') return false
  names.add(name)
  return true
}
