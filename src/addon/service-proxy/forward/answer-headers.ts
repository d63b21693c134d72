import {
  endToEndHeaders,
  headerPairs,
  homeCookie,
  isOriginHeader,
  sandboxPolicy,
} from '../../../http/index.ts'
import { tunnelHeader } from '../../token/index.ts'
import { rewriteUrl, type UrlPlaces } from '../rewrite/rewrite-url.ts'

/** What is to be known to make an answer fit for its client. */
export interface AnswerPlaces extends UrlPlaces {
  /** Whether the answer depends on who asked. */
  readonly hasIdentity: boolean
  readonly isOwnCookie: (pair: string) => boolean
  /** Whether the content may not run on the API's origin. */
  readonly isSandboxed: boolean
}

/** Sent by this server itself, whatever the add-on sends. */
const ownHeaders = new Set(['audit-id', 'x-content-type-options', tunnelHeader.toLowerCase()])

/** Policies under which a page would not say to us, either, which add-on it belongs to. */
const silent = /(?:^|,)\s*(?:no-referrer|origin|strict-origin)\s*$/i

/** The headers of an answer by their names in lower case, as the client gets them. */
export function clientHeaders(
  rawHeaders: readonly string[],
  places: AnswerPlaces,
): Map<string, string[]> {
  const headers = new Map<string, string[]>()
  for (const [spelt, sent] of headerPairs(endToEndHeaders(rawHeaders))) {
    const name = spelt.toLowerCase()
    const value = valueFor(name, sent, places)
    if (value === undefined) continue
    const known = headers.get(name)
    if (known) known.push(value)
    else headers.set(name, [value])
  }
  headers.set('cache-control', [privately(headers.get('cache-control'))])
  if (places.isSandboxed) sandbox(headers)
  if (places.hasIdentity)
    headers.set('vary', [...(headers.get('vary') ?? []), 'Authorization, Cookie'])
  return headers
}

/** A policy more, and last: browsers enforce all of them, and a proxy on another origin takes exactly this one off. */
function sandbox(headers: Map<string, string[]>): void {
  const policies = headers.get('content-security-policy') ?? []
  headers.set('content-security-policy', [...policies, sandboxPolicy])
}

function valueFor(name: string, value: string, places: AnswerPlaces): string | undefined {
  if (isOriginHeader(name) || ownHeaders.has(name)) return undefined
  if (name === 'location' || name === 'content-location') return rewriteUrl(value, places)
  if (name === 'referrer-policy') return silent.test(value) ? 'same-origin' : value
  if (name !== 'set-cookie') return value
  if (places.isOwnCookie(value)) return undefined
  return homeCookie(value, { prefix: places.prefix, mount: places.prefix })
}

/** What one user was shown is for nobody else, whatever the add-on says. */
function privately(values: readonly string[] | undefined): string {
  if (!values) return 'no-cache, private'
  const kept = values
    .flatMap((value) => value.split(','))
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '')
    .filter((directive) => !/^(?:public|private|s-maxage|proxy-revalidate)\b/i.test(directive))
  // In front: behind a quote that is never closed nobody would read it.
  return ['private', ...kept].join(', ')
}
