import type { IncomingMessage } from 'node:http'
import { identityHeaderTest, withoutIdentity } from '../authn/index.ts'
import { endToEndHeaders, foldHeaderName, headerPairs, rawHeaderValues } from '../http/index.ts'
import type { HostName } from './host-header.ts'

/** By what others than Kubernetes believe in a user; whole names, or beginnings that end in a dash. */
const foreignIdentity: readonly string[] = [
  'x-authenticated-',
  'x-authorized-user',
  'x-auth-request-',
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-groups',
  'x-forwarded-preferred-username',
  'x-forwarded-access-token',
  'x-forwarded-client-cert',
  'remote-user',
  'remote-groups',
  'remote-name',
  'remote-email',
  'x-webauth-',
  'x-authentik-',
  'x-pomerium-',
  'x-goog-authenticated-',
  'x-goog-iap-',
  'cf-access-',
  'x-amzn-oidc-',
  'x-ms-client-principal',
]

const isKubernetesIdentity = identityHeaderTest()

/** Whether a header claims an identity to somebody behind us, in any spelling. */
function isIdentityHeader(name: string): boolean {
  if (isKubernetesIdentity(name)) return true
  const folded = foldHeaderName(name)
  return (
    folded.startsWith('x-remote-') ||
    foreignIdentity.some((each) => (each.endsWith('-') ? folded.startsWith(each) : folded === each))
  )
}

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
