import type { IncomingMessage } from 'node:http'
import { withoutIdentity } from '../authn/index.ts'
import { endToEndHeaders, foldHeaderName, headerPairs, rawHeaderValues } from '../http/index.ts'
import type { HostName } from './addon-origin.ts'
import { cookieSetterAt, type ResponsePlace } from './answer-headers.ts'
import type { SeenCookies } from './seen-cookies.ts'

/** Set or answered by us, or by the connection to the API server. */
const ownHeaders = new Set(['host', 'expect', 'cookie', 'x-forwarded-for'])
const forwardedHost = new Set(['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'])

/** What requests are rewritten by. */
export interface RequestRewriting {
  readonly cookies: SeenCookies
  /** Whether a header of a client claims an identity and is removed. */
  readonly isIdentityHeader: (name: string) => boolean
}

/**
 * The headers with which a request is forwarded: no credential, nothing of this connection, no cookie that the
 * receiver did not set, and from where it comes.
 */
export function requestHeaders(
  request: Pick<IncomingMessage, 'rawHeaders' | 'socket'>,
  { place, host }: { readonly place: ResponsePlace; readonly host: HostName },
  { cookies, isIdentityHeader }: RequestRewriting,
): Record<string, string | string[]> {
  const { rawHeaders } = request
  const isOwn = place.kind === 'own'
  const kept = withoutIdentity(endToEndHeaders(rawHeaders), isIdentityHeader)
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const [spelt, value] of headerPairs(kept)) {
    const name = spelt.toLowerCase()
    if (ownHeaders.has(name) || (isOwn && isReplacedForAddon(name))) continue
    add(headers, name, value)
  }
  const sent = cookies.filter(
    cookieSetterAt(place),
    rawHeaderValues(rawHeaders, 'cookie').join(';'),
  )
  if (sent !== '') headers['cookie'] = sent
  const hops = [...rawHeaderValues(rawHeaders, 'x-forwarded-for'), request.socket.remoteAddress]
  const known = hops.filter((hop) => hop !== undefined && hop !== '')
  if (known.length > 0) headers['x-forwarded-for'] = known.join(', ')
  // Of WebSockets Chromium sends the origin only, and the API server cannot know that this is ours.
  if (headers['origin'] === `http://${host.authority}`) headers['sec-fetch-site'] ??= 'same-origin'
  if (!isOwn) return headers
  // An application that builds links, or compares an origin with its host, must know its address.
  headers['x-forwarded-host'] = host.authority
  headers['x-forwarded-proto'] = 'http'
  return headers
}

/** On its own origin an add-on may have service workers; API servers refuse them on theirs. */
const isReplacedForAddon = (name: string): boolean =>
  name === 'service-worker' || forwardedHost.has(foldHeaderName(name))

function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  const known = headers[name]
  if (known === undefined) headers[name] = value
  else headers[name] = [...(typeof known === 'string' ? [known] : known), value]
}
