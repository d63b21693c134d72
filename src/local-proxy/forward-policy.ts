import type { IncomingMessage } from 'node:http'
import { withoutIdentity } from '../authn/index.ts'
import { SallyportError } from '../core/index.ts'
import { type ForwardPolicy, forwarderHeaders } from '../http/forward/index.ts'
import {
  endToEndHeaders,
  foldHeaderName,
  headerPairs,
  homeCookie,
  isOriginHeader,
  rawHeaderValues,
  sandboxPolicy,
  withoutSandbox,
} from '../http/index.ts'
import { type ResponseHead, ResponseInvalid } from '../http/upstream/index.ts'
import type { HostName } from './addon-origin.ts'
import type { SeenCookies } from './seen-cookies.ts'

/** Where the client sees a response, which decides what the response may do there. */
export type ResponsePlace =
  /** The API itself, on the plain origin. */
  | { readonly kind: 'api' }
  /** Content of an application behind the API server, on the plain origin: at `mount` instead of `prefix`. */
  | { readonly kind: 'shared'; readonly prefix: string; readonly mount: string }
  /** Content of an add-on on its own origin, where `prefix` is the root. */
  | { readonly kind: 'own'; readonly prefix: string; readonly host: HostName }

/** Where a request goes, and where its response is shown. */
export interface ForwardPlan {
  readonly kind: 'forward'
  /** Path and query at the API server. */
  readonly path: string
  readonly host: HostName
  readonly place: ResponsePlace
}

/** What headers are rewritten with. */
export interface HeaderRewriting {
  /** The API server's address: links to it are links to the application. */
  readonly server: string
  readonly cookies: SeenCookies
  /** Whether a header of a client claims an identity and is removed. */
  readonly isIdentityHeader: (name: string) => boolean
}

/** Set by us, or by the connection to the API server. */
const ownHeaders = new Set([...forwarderHeaders, 'host', 'cookie'])
const forwardedHost = new Set(['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'])

/**
 * The headers with which a request is forwarded, as a flat list: no credential, nothing of this connection, and no
 * cookie that the receiver did not set.
 */
export function requestHeaders(
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>,
  { place, host }: Pick<ForwardPlan, 'place' | 'host'>,
  { cookies, isIdentityHeader }: Pick<HeaderRewriting, 'cookies' | 'isIdentityHeader'>,
): string[] {
  const isOwn = place.kind === 'own'
  const headers: string[] = []
  for (const [spelt, value] of headerPairs(
    withoutIdentity(endToEndHeaders(rawHeaders), isIdentityHeader),
  )) {
    const name = spelt.toLowerCase()
    if (!ownHeaders.has(name) && !(isOwn && isReplacedForAddon(name))) headers.push(name, value)
  }
  const cookie = cookies.filter(
    cookieSetterAt(place),
    rawHeaderValues(rawHeaders, 'cookie').join(';'),
  )
  if (cookie !== '') headers.push('cookie', cookie)
  // Of WebSockets Chromium sends the origin only, and the API server cannot know that this is ours.
  const [origin, ...others] = rawHeaderValues(headers, 'origin')
  const isSameOrigin = origin === `http://${host.authority}` && others.length === 0
  if (isSameOrigin && rawHeaderValues(headers, 'sec-fetch-site').length === 0)
    headers.push('sec-fetch-site', 'same-origin')
  // An application that builds links, or compares an origin with its host, must know its address.
  if (isOwn) headers.push('x-forwarded-host', host.authority, 'x-forwarded-proto', 'http')
  return headers
}

/** On its own origin an add-on may have service workers; API servers refuse them on theirs. */
const isReplacedForAddon = (name: string): boolean =>
  name === 'service-worker' || forwardedHost.has(foldHeaderName(name))

/**
 * On the plain origin everything from upstream is data: documents have an opaque origin and run no script, whatever
 * the path was taken for, and other origins cannot embed it. Only our own pages and the files of `--www` run there.
 */
const dataOnly = [
  ['content-security-policy', sandboxPolicy],
  ['x-content-type-options', 'nosniff'],
  ['cross-origin-resource-policy', 'same-origin'],
] as const

/** Of which browsers take the first value, or none of several. */
const replaced: ReadonlySet<string> = new Set([
  'x-content-type-options',
  'cross-origin-resource-policy',
])

/** By which a setter of cookies is known: browsers keep the cookies of each of these apart. */
const cookieSetterAt = (place: ResponsePlace): string => {
  if (place.kind === 'own') return place.host.name
  return place.kind === 'shared' ? place.mount : 'api'
}

/** How responses are forwarded to where the client sees them. */
export class ProxyPolicy implements ForwardPolicy {
  readonly #place: ResponsePlace
  readonly #rewriting: Pick<HeaderRewriting, 'server' | 'cookies'>

  constructor(place: ResponsePlace, rewriting: Pick<HeaderRewriting, 'server' | 'cookies'>) {
    this.#place = place
    this.#rewriting = rewriting
  }

  responseHeaders({ rawHeaders }: Pick<ResponseHead, 'rawHeaders'>): string[] {
    const { server, cookies } = this.#rewriting
    const place = this.#place
    const kept: string[] = []
    for (const [spelt, sent] of headerPairs(endToEndHeaders(rawHeaders))) {
      const name = spelt.toLowerCase()
      if (name === 'set-cookie') cookies.add(cookieSetterAt(place), sent)
      const value = valueAt(place, name, sent, server)
      if (value !== undefined) kept.push(name, value)
    }
    return place.kind === 'own' ? kept : kept.concat(...dataOnly)
  }

  failure(error: unknown): Error {
    if (error instanceof SallyportError) return error
    return new ResponseInvalid('the API server did not respond with HTTP', { cause: error })
  }
}

function valueAt(
  place: ResponsePlace,
  name: string,
  value: string,
  server: string,
): string | undefined {
  if (place.kind !== 'own' && replaced.has(name)) return undefined
  if (place.kind === 'api') return value
  if (place.kind === 'shared' && isOriginHeader(name)) return undefined
  const home = { prefix: place.prefix, mount: place.kind === 'own' ? '' : place.mount }
  if (name === 'set-cookie') return homeCookie(value, home)
  if (name === 'location' || name === 'content-location') return homeLocation(value, home, server)
  // Added by our API server for the origin that it shares with add-ons; here the add-on is alone.
  if (name === 'content-security-policy' && place.kind === 'own') return withoutSandbox(value)
  return value
}

/** The API server has put the proxy's path before an application's links; the client knows another one. */
function homeLocation(
  value: string,
  { prefix, mount }: { readonly prefix: string; readonly mount: string },
  server: string,
): string {
  const path = value.startsWith(`${server}/`) ? value.slice(server.length) : value
  if (!path.startsWith(prefix)) return value
  const rest = path.slice(prefix.length)
  if (!/^(?:[/?#]|$)/.test(rest)) return value
  // Two slashes in front would be another host.
  return mount === '' ? `/${rest.replace(/^\/+/, '')}` : mount + rest
}
