import type { IncomingMessage } from 'node:http'

/** The host that the client requests; HTTP/2 has a field of its own for it. */
export const hostOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string =>
  headers.host ?? String(headers[':authority'] ?? '')

/**
 * Every value of a header, in order and as it was sent. Security decisions read raw headers: Node's
 * `headers` keeps the first of two credentials silently and joins others.
 */
export function rawHeaderValues(rawHeaders: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase()
  const values: string[] = []
  // Asked several times per request: a plain loop, and the length tells most names apart.
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index] ?? ''
    if (found.length === wanted.length && found.toLowerCase() === wanted)
      values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** The names and values of raw headers, pair by pair. */
export function* headerPairs(
  rawHeaders: readonly string[],
): Generator<readonly [name: string, value: string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    yield [rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '']
  }
}

const maxKnownSpellings = 1_000
const maxSpellingLength = 64

/** What is known of a header name by its spelling as it was sent. Clients use few different ones. */
export class SpellingCache<T> {
  readonly #lookUp: (spelt: string) => T | undefined
  #known = new Map<string, T | undefined>()

  constructor(lookUp: (spelt: string) => T | undefined) {
    this.#lookUp = lookUp
  }

  get(spelt: string): T | undefined {
    const known = this.#known.get(spelt)
    if (known !== undefined || this.#known.has(spelt)) return known
    const found = this.#lookUp(spelt)
    // A client that sends thousands of names must not fill the memory.
    if (this.#known.size >= maxKnownSpellings) this.#known = new Map()
    if (spelt.length <= maxSpellingLength) this.#known.set(spelt, found)
    return found
  }
}

/** The raw headers whose names are not picked out. */
export function withoutHeaders(
  rawHeaders: readonly string[],
  isUnwanted: (name: string) => boolean,
): string[] {
  const kept: string[] = []
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (!isUnwanted(name)) kept.push(name, value)
  }
  return kept
}

/**
 * A header name as the most careless reader behind us would take it: CGI and its heirs see no
 * difference between `-` and whatever else is no letter and no digit, nor between cases.
 */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')
}
