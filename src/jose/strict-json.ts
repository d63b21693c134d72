/** An object as JSON had it; read its members with `member`, never by their names alone. */
export type JsonObject = Readonly<Record<string, unknown>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads bytes as one JSON object; undefined for anything else, for bad UTF-8 and for members that come twice. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) && !hasDuplicates(text) ? value : undefined
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

const punctuationOrString = /[{}[\],]|"(?:[^"\\]|\\.)*"(\s*:)?/g

/** Looks for an object with a member twice; the text is known to be JSON. */
function hasDuplicates(text: string): boolean {
  const seen: Set<string>[] = []
  for (const [token, colon] of text.matchAll(punctuationOrString)) {
    if (token === '{') seen.push(new Set())
    else if (token === '}') seen.pop()
    else if (colon !== undefined) {
      const name: unknown = JSON.parse(token.slice(0, -colon.length))
      const names = seen.at(-1)
      if (typeof name !== 'string' || names === undefined || names.has(name)) return true
      names.add(name)
    }
  }
  return false
}
