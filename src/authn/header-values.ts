import { headerPairs } from '../http/index.ts'

/** What follows `prefix` in the names (in lower case) of the headers that begin with it, and their values. */
export function prefixedHeaders(
  rawHeaders: readonly string[],
  prefix: string,
): { readonly rest: string; readonly value: string }[] {
  const wanted = prefix.toLowerCase()
  const found = []
  for (const [spelt, value] of headerPairs(rawHeaders)) {
    const name = spelt.toLowerCase()
    if (name.startsWith(wanted)) found.push({ rest: name.slice(prefix.length), value })
  }
  return found
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The text of a header value. Node reads bytes as Latin-1; names are sent as UTF-8. Throws if they are not. */
export function headerText(value: string): string {
  if (/^[\x00-\x7f]*$/.test(value)) return value
  return utf8.decode(Buffer.from(value, 'latin1'))
}

/** The key of an extra: in lower case, percent-decoded if it can be, as Kubernetes does. */
export function extraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

/** Collects values under keys that a client chose, safe from keys such as `__proto__`. */
export function groupValues(
  pairs: Iterable<readonly [key: string, value: string]>,
): Record<string, string[]> {
  const grouped = new Map<string, string[]>()
  for (const [key, value] of pairs) {
    const known = grouped.get(key)
    if (known) known.push(value)
    else grouped.set(key, [value])
  }
  return Object.fromEntries(grouped)
}
