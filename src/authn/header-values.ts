/** Every value of a header as it was sent, whatever the case of its name; never joined or split. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase()
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === wanted) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** Names (as sent) and values of the headers whose name begins with `prefix`, whatever the case. */
export function prefixedHeaders(
  rawHeaders: readonly string[],
  prefix: string,
): { readonly rest: string; readonly value: string }[] {
  const wanted = prefix.toLowerCase()
  const found = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? ''
    if (!name.startsWith(wanted)) continue
    found.push({ rest: name.slice(prefix.length), value: rawHeaders[index + 1] ?? '' })
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
