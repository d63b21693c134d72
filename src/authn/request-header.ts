import type { Socket } from 'node:net'
import {
  type Authentication,
  type AuthenticationRequest,
  type Authenticator,
  unauthorized,
} from '../core/index.ts'
import { headerPairs, rawHeaderValues } from '../http/index.ts'
import type { ClientCertificateVerifier, VerifiedClientCertificate } from './client-certificate.ts'

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

/**
 * The key of an extra, percent-decoded. Kubernetes keeps a key that cannot be decoded as it is; here it
 * throws, because no client of Kubernetes sends one and two keys could look the same.
 */
export function extraKey(encoded: string): string {
  return decodeURIComponent(encoded)
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

/** The headers in which a front proxy says who sent a request. */
export interface FrontProxyHeaders {
  readonly username: readonly string[]
  readonly uid: readonly string[]
  readonly group: readonly string[]
  readonly extraPrefix: readonly string[]
}

/** The names that Kubernetes' own components use. */
export const standardFrontProxyHeaders: FrontProxyHeaders = {
  username: ['X-Remote-User'],
  uid: ['X-Remote-Uid'],
  group: ['X-Remote-Group'],
  extraPrefix: ['X-Remote-Extra-'],
}

/** Which front proxies are believed. */
export interface RequestHeaderOptions {
  /** Verifies under the front proxies' CA, which must not be the clients'. */
  readonly verify: ClientCertificateVerifier
  /** Common names of front proxies; none means every certificate under that CA. */
  readonly allowedNames: readonly string[]
  readonly headers?: FrontProxyHeaders
}

/**
 * Takes the identity from headers, but only on a connection whose certificate the front-proxy CA
 * vouches for. From anyone else they mean nothing: the request is left to the next authenticator.
 */
export function requestHeader(options: RequestHeaderOptions): Authenticator {
  const { verify, allowedNames, headers = standardFrontProxyHeaders } = options
  const usernameKeys = headers.username.map((name) => name.toLowerCase())
  return {
    name: 'request-header',
    authenticate: (request) => {
      if (!usernameKeys.some((name) => request.headers[name] !== undefined)) return undefined
      const proxy = frontProxy(verify, request.socket)
      if (!proxy) return undefined
      if (allowedNames.length > 0 && !allowedNames.includes(proxy.commonName)) return undefined
      return identityFrom(request, headers, proxy)
    },
  }
}

/** A certificate under another CA is not ours to judge: the client certificate authenticator will. */
function frontProxy(verify: ClientCertificateVerifier, socket: Socket) {
  try {
    return verify(socket)
  } catch {
    return undefined
  }
}

function identityFrom(
  { rawHeaders }: AuthenticationRequest,
  headers: FrontProxyHeaders,
  proxy: VerifiedClientCertificate,
): Authentication {
  const username = single(rawHeaders, headers.username)
  if (username === undefined) throw unauthorized('front proxy: the user name is empty')
  const uid = single(rawHeaders, headers.uid)
  const groups = headers.group
    .flatMap((name) => rawHeaderValues(rawHeaders, name))
    .map((value) => nonEmpty(value))
  const extra = headers.extraPrefix.flatMap((prefix) => prefixedHeaders(rawHeaders, prefix))
  return {
    user: {
      username,
      ...(uid !== undefined && { uid }),
      groups,
      ...(extra.length > 0 && {
        extra: groupValues(extra.map(({ rest, value }) => [text(rest, extraKey), text(value)])),
      }),
    },
    method: 'request-header',
    credential: { type: 'certificate', serial: proxy.serial },
    expiresAt: proxy.notAfter,
  }
}

/** Kubernetes ignores an empty identity header; here the proxy's claim is wrong, because it cannot be read as sent. */
function nonEmpty(value: string): string {
  if (value === '') throw unauthorized('front proxy: an identity header is empty')
  return text(value)
}

/**
 * The value of the first header that has one. A second value would be one that the proxy let
 * through from the client, and nobody can tell which is which.
 */
function single(rawHeaders: readonly string[], names: readonly string[]): string | undefined {
  for (const name of names) {
    const [value, ...others] = rawHeaderValues(rawHeaders, name)
    if (others.length > 0) throw unauthorized(`front proxy: ${name} is there more than once`)
    if (value !== undefined) return nonEmpty(value)
  }
  return undefined
}

function text(value: string, decode = headerText): string {
  try {
    return decode(value)
  } catch {
    throw unauthorized(
      'front proxy: an identity header is not UTF-8, or its key is not percent-encoded',
    )
  }
}
