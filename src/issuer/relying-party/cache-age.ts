import type { FetchedDocument } from './fetch-document.ts'

/** Between which bounds the word of a server counts, in milliseconds. */
export interface AgeBounds {
  readonly shortestMs: number
  readonly longestMs: number
  /** What counts when the server says nothing. */
  readonly usualMs: number
}

/** How long a document may be kept: `max-age` less the age it came with, within bounds. */
export function cacheAgeMs(
  { cacheControl, ageSeconds = 0 }: Omit<FetchedDocument, 'body'>,
  bounds: AgeBounds,
): number {
  const directives = (cacheControl ?? '').toLowerCase().split(',')
  const named = new Map(directives.map((each) => pairOf(each)))
  if (named.has('no-store') || named.has('no-cache')) return bounds.shortestMs
  const seconds = named.get('max-age')
  const said = seconds !== undefined && /^\d{1,10}$/.test(seconds) ? Number(seconds) : undefined
  if (said === undefined) return bounds.usualMs
  const left = (said - Math.max(0, ageSeconds)) * 1000
  return Math.min(Math.max(left, bounds.shortestMs), bounds.longestMs)
}

function pairOf(directive: string): [string, string] {
  const [name = '', value = ''] = directive.trim().split('=')
  return [name, value.replace(/^"(.*)"$/, '$1')]
}
