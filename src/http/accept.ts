/** One entry of an Accept header. */
export interface MediaRange {
  /** In lower case; `*` for any. */
  readonly type: string
  readonly subtype: string
  /** Lower-case names without `q`, for example `as`, `g` and `v` of a Table request. */
  readonly params: Readonly<Record<string, string>>
  /** From above 0 to 1; what a client refuses by `q=0` is left out. */
  readonly quality: number
}

const anything: readonly MediaRange[] = [{ type: '*', subtype: '*', params: {}, quality: 1 }]
const cache = new Map<string, readonly MediaRange[]>()
const cacheLimit = 200

/** What a client accepts, best first; without a header it is anything, and unreadable entries are left out. */
export function acceptedTypes(header: string | undefined): readonly MediaRange[] {
  if (header === undefined || header.trim() === '') return anything
  const known = cache.get(header)
  if (known) return known
  const ranges = splitOutsideQuotes(header, ',')
    .map(parseRange)
    .filter((range) => range !== undefined)
    .filter((range) => range.quality > 0)
    .sort((a, b) => b.quality - a.quality || specificity(b) - specificity(a))
  // Clients send few different headers; an attacker's thousands must not fill the memory.
  if (cache.size >= cacheLimit) cache.clear()
  if (header.length <= 1024) cache.set(header, ranges)
  return ranges
}

const specificity = (range: MediaRange): number =>
  range.type === '*' ? 0 : range.subtype === '*' ? 1 : 2

/** With the `@` that RFC 9110 has not: kubectl asks for OpenAPI by a name with one. */
const token = /^[!#$%&'*+.^_`|~@0-9a-z-]+$/

function parseRange(text: string): MediaRange | undefined {
  const [mediaType = '', ...parts] = splitOutsideQuotes(text, ';')
  const [type = '', subtype = '', ...more] = mediaType.trim().toLowerCase().split('/')
  if (more.length > 0 || !token.test(type) || !token.test(subtype)) return undefined
  if (type === '*' && subtype !== '*') return undefined
  const { q = '1', ...params } = Object.fromEntries(parts.map(parseParameter))
  const quality = Number(q)
  return quality >= 0 && quality <= 1 ? { type, subtype, params, quality } : undefined
}

function parseParameter(text: string): [name: string, value: string] {
  const [name = '', ...value] = text.split('=')
  return [name.trim().toLowerCase(), unquote(value.join('=').trim())]
}

function unquote(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return value
  return value.slice(1, -1).replaceAll(/\\(.)/g, '$1')
}

function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  if (!text.includes('"')) return text.split(separator)
  const parts: string[] = []
  let start = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (quoted && char === '\\') i++
    else if (char === '"') quoted = !quoted
    else if (char === separator && !quoted) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}
