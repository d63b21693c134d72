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
const punctuationOrString = /[{}[\],]|"(?:[^"\\]|\\.)*"(\s*:)?/g

/** Looks for members that come twice or change prototypes, and for depth; the text is known to be JSON. */
function isAmbiguous(text: string): boolean {
  const seen: Set<string>[] = []
  for (const [token, colon] of text.matchAll(punctuationOrString)) {
    if (token === '{' || token === '[') {
      if (seen.push(new Set()) > deepest) return true
    } else if (token === '}' || token === ']') seen.pop()
    else if (colon !== undefined) {
      const name: unknown = JSON.parse(token.slice(0, -colon.length))
      const names = seen.at(-1)
      if (typeof name !== 'string' || !names || names.has(name) || name === '__proto__') return true
      names.add(name)
    }
  }
  return false
}
