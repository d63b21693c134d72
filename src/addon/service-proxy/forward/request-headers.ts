import type { IncomingMessage } from 'node:http'
import { withoutIdentity } from '../../../authn/index.ts'
import {
  endToEndHeaders,
  foldHeaderName,
  headerPairs,
  hostOf,
  rawHeaderValues,
  takesTrailers,
} from '../../../http/index.ts'
import { renewTunnelHeader, tunnelHeader } from '../../token/index.ts'

/** What a request tells its backend besides what its client said. */
export interface ForwardedFacts {
  /** The path by which the client reached the proxy. */
  readonly uri: string
  readonly peer: string
  /** By which the audit log names the request. */
  readonly auditId: string
  /** In place of whatever credential the client has sent. */
  readonly token?: string
  /** A cookie that is ours and no business of the add-on. */
  readonly isOwnCookie: (pair: string) => boolean
  readonly isIdentityHeader: (name: string) => boolean
}

/** Set by us, or answered before the request goes on. */
const own = new Set(['host', 'expect', 'cookie', 'content-length', 'x-forwarded-for', 'audit-id'])
const ownFolded = new Set(
  ['X-Forwarded-Uri', tunnelHeader, renewTunnelHeader].map((name) => name.toLowerCase()),
)

/**
 * The headers of a request as its backend gets them, as a flat list: nothing of the client's connection, no
 * credential and no claim of an identity in any spelling, then what we say ourselves.
 */
export function backendHeaders(request: IncomingMessage, facts: ForwardedFacts): string[] {
  const { rawHeaders } = request
  const kept = withoutIdentity(endToEndHeaders(rawHeaders), facts.isIdentityHeader)
  const out = ['Host', hostOf(request)]
  for (const [name, value] of headerPairs(kept)) {
    const lower = name.toLowerCase()
    if (!own.has(lower) && !ownFolded.has(foldHeaderName(lower))) out.push(name, value)
  }
  const cookies = foreignCookies(rawHeaders, facts)
  if (cookies !== '') out.push('Cookie', cookies)
  const hops = [...rawHeaderValues(rawHeaders, 'x-forwarded-for'), facts.peer]
  out.push('X-Forwarded-For', hops.filter((hop) => hop !== '').join(', '))
  out.push('X-Forwarded-Uri', facts.uri)
  if (facts.auditId !== '') out.push('Audit-Id', facts.auditId)
  if (takesTrailers(rawHeaders)) out.push('TE', 'trailers')
  if (facts.token !== undefined) out.push('Authorization', `Bearer ${facts.token}`)
  out.push(...framing(request))
  return out
}

/** Whether a request has a body. */
export const hasBody = (request: IncomingMessage): boolean =>
  request.headers['transfer-encoding'] !== undefined ||
  Number(request.headers['content-length'] ?? 0) > 0 ||
  isOpenStream(request)

/** Methods that change nothing, so that sending them twice does no harm. */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again to a backend that may have read it. */
export const isSafe = (request: IncomingMessage): boolean =>
  safeMethods.has(request.method ?? '') && !hasBody(request)

/** HTTP/2 frames bodies by itself: without a length, only its stream knows whether there is one. */
function isOpenStream(request: IncomingMessage): boolean {
  if (request.httpVersionMajor !== 2 || request.headers['content-length'] !== undefined)
    return false
  const stream: unknown = 'stream' in request ? request.stream : undefined
  const isOver =
    typeof stream === 'object' && stream !== null && 'endAfterHeaders' in stream
      ? stream.endAfterHeaders
      : true
  return isOver !== true
}

const bodyMethods = new Set(['POST', 'PUT', 'PATCH'])

/** The framing belongs to one connection, but that there is a body, and how long it is, does not. */
function framing(request: IncomingMessage): string[] {
  const { method = '', headers } = request
  const length = headers['content-length']
  if (headers['transfer-encoding'] !== undefined || isOpenStream(request))
    return ['Transfer-Encoding', 'chunked']
  if (length !== undefined) return ['Content-Length', length]
  return bodyMethods.has(method) ? ['Content-Length', '0'] : []
}

function foreignCookies(rawHeaders: readonly string[], { isOwnCookie }: ForwardedFacts): string {
  return rawHeaderValues(rawHeaders, 'cookie')
    .flatMap((value) => value.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '' && !isOwnCookie(pair))
    .join('; ')
}
