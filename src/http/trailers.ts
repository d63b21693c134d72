import type { IncomingMessage } from 'node:http'
import { endToEndHeaders, headerPairs, rawHeaderValues } from './headers.ts'
import { isOriginHeader } from './origin-headers.ts'

/**
 * Fields that decide something before a body ends: where it ends, who may see or keep it, whose session it is. A
 * reader that adds trailers to the headers would be told otherwise behind our back (RFC 9110 section 6.5.1).
 */
const decisive = new RegExp(
  `^(?:${[
    'age|audit-id|authentication-info|authorization|cache-control|cookie|date|expires|host|link|location|pragma',
    'referrer-policy|refresh|retry-after|set-cookie|status|vary|warning',
    '(?:content|cross-origin|impersonate|sallyport|sec|x-(?:content|frame|remote))-.*',
  ].join('|')})$`,
  'i',
)

/** The trailers that a message announces and that may be passed on. */
export function announcedTrailers(rawHeaders: readonly string[]): string[] {
  const names = rawHeaderValues(rawHeaders, 'trailer')
    .flatMap((value) => value.split(','))
    .map((name) => name.trim())
  const isFit = (name: string): boolean =>
    /^[\w-]+$/.test(name) &&
    !decisive.test(name) &&
    !isOriginHeader(name.toLowerCase()) &&
    endToEndHeaders([name, '']).length > 0
  return [...new Set(names.filter(isFit))]
}

/** Whether the answer to a request has a place for trailers: a body, in chunks. */
export function mayHaveTrailers(
  { method, httpVersion }: Pick<IncomingMessage, 'method' | 'httpVersion'>,
  answer: { readonly status: number; readonly isChunked: boolean },
): boolean {
  const hasBody = method !== 'HEAD' && answer.status !== 204 && answer.status !== 304
  return hasBody && answer.isChunked && httpVersion !== '1.0'
}

/** Of the trailers that came, those that were announced, by their names as they were. */
export function keptTrailers(
  rawTrailers: readonly string[],
  announced: readonly string[],
): [name: string, value: string][] {
  const known = new Set(announced.map((name) => name.toLowerCase()))
  const kept: [string, string][] = []
  for (const [name, value] of headerPairs(rawTrailers))
    if (known.has(name.toLowerCase())) kept.push([name, value])
  return kept
}

/** Whether whoever asks can use trailers. */
export const takesTrailers = (rawHeaders: readonly string[]): boolean =>
  rawHeaderValues(rawHeaders, 'te')
    .flatMap((value) => value.split(','))
    .some((coding) => coding.trim().toLowerCase() === 'trailers')
