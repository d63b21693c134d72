import type { IncomingMessage } from 'node:http'
import { withoutIdentity } from '../authn/index.ts'
import {
  endToEndHeaders,
  foldHeaderName,
  headerPairs,
  isIdentityHeader,
  rawHeaderValues,
} from '../http/index.ts'
import type { HostName } from './addon-origin.ts'

/** Set or answered by us, or by the connection to the API server. */
const ownHeaders = new Set(['host', 'expect', 'x-forwarded-for'])
const forwardedHost = new Set(['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'])

/** The headers with which a request goes on: no credential, nothing of this connection, and who asked. */
export function requestHeaders(
  request: Pick<IncomingMessage, 'rawHeaders' | 'socket'>,
  addonHost?: HostName,
): Record<string, string | string[]> {
  const { rawHeaders } = request
  const kept = withoutIdentity(endToEndHeaders(rawHeaders), isIdentityHeader)
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const [spelt, value] of headerPairs(kept)) {
    const name = spelt.toLowerCase()
    if (ownHeaders.has(name) || (addonHost && forwardedHost.has(foldHeaderName(name)))) continue
    add(headers, name, value)
  }
  const hops = [...rawHeaderValues(rawHeaders, 'x-forwarded-for'), request.socket.remoteAddress]
  const known = hops.filter((hop) => hop !== undefined && hop !== '')
  if (known.length > 0) headers['x-forwarded-for'] = known.join(', ')
  if (!addonHost) return headers
  // An application that builds links, or compares an origin with its host, must know its address.
  headers['x-forwarded-host'] = addonHost.authority
  headers['x-forwarded-proto'] = 'http'
  return headers
}

function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  const known = headers[name]
  if (known === undefined) headers[name] = value
  else if (name === 'cookie') headers[name] = `${String(known)}; ${value}`
  else headers[name] = [...(typeof known === 'string' ? [known] : known), value]
}
