import type { IncomingMessage } from 'node:http'
import { withoutIdentity } from '../../authn/index.ts'
import { forwarderHeaders } from '../../http/forward/index.ts'
import {
  endToEndHeaders,
  foldHeaderName,
  headerPairs,
  hostOf,
  rawHeaderValues,
} from '../../http/index.ts'
import { renewTunnelHeader, tunnelHeader } from '../token/index.ts'

/** What a backend is told besides what its client sent. */
export interface ForwardedFacts {
  /** The path by which the client reached the proxy. */
  readonly uri: string
  /** By which the audit log names the request. */
  readonly auditId: string
  /** In place of whatever credential the client has sent. */
  readonly token?: string
  /** A cookie of ours, which the add-on does not get. */
  readonly isOwnCookie: (pair: string) => boolean
  readonly isIdentityHeader: (name: string) => boolean
}

/** Set by us, or answered before the request is forwarded. */
const own = new Set([...forwarderHeaders, 'host', 'cookie', 'audit-id'])
const ownFolded = new Set(
  ['X-Forwarded-Uri', tunnelHeader, renewTunnelHeader].map((name) => name.toLowerCase()),
)

/**
 * The headers of a request as its backend gets them, as a flat list: nothing of the client's connection, no
 * credential and no claim of an identity in any spelling, then our own.
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
  out.push('X-Forwarded-Uri', facts.uri)
  if (facts.auditId !== '') out.push('Audit-Id', facts.auditId)
  if (facts.token !== undefined) out.push('Authorization', `Bearer ${facts.token}`)
  return out
}

function foreignCookies(rawHeaders: readonly string[], { isOwnCookie }: ForwardedFacts): string {
  return rawHeaderValues(rawHeaders, 'cookie')
    .flatMap((value) => value.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '' && !isOwnCookie(pair))
    .join('; ')
}
