import type { IncomingHttpHeaders } from 'node:http'
import {
  endToEndHeaders,
  headerPairs,
  homeCookie,
  isOriginHeader,
  sandboxPolicy,
  withoutSandbox,
} from '../http/index.ts'
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

/** What headers are rewritten with. */
export interface HeaderRewriting {
  /** The API server's address: links to it are links to the application. */
  readonly server: string
  readonly cookies: SeenCookies
}

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
export const cookieSetterAt = (place: ResponsePlace): string => {
  if (place.kind === 'own') return place.host.name
  return place.kind === 'shared' ? place.mount : 'api'
}

/** The headers of a response as the client gets them, as a flat list. */
export function answerHeaders(
  headers: IncomingHttpHeaders,
  place: ResponsePlace,
  rewriting: HeaderRewriting,
): string[] {
  const kept: string[] = []
  for (const [name, sent] of headerPairs(endToEndHeaders(flatten(headers)))) {
    if (name === 'set-cookie') rewriting.cookies.add(cookieSetterAt(place), sent)
    const value = valueAt(place, name, sent, rewriting.server)
    if (value !== undefined) kept.push(name, value)
  }
  return place.kind === 'own' ? kept : kept.concat(...dataOnly)
}

function flatten(headers: IncomingHttpHeaders): string[] {
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') flat.push(name, value)
    else for (const each of value ?? []) flat.push(name, each)
  }
  return flat
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
