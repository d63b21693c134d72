import { type AuthenticationRequest, unauthorized } from '../core/index.ts'
import { rawHeaderValues } from '../http/index.ts'

const header = 'sec-websocket-protocol'
const tokenPrefix = 'base64url.bearer.authorization.k8s.io.'

const protocolsOf = (values: readonly string[]): string[] =>
  values
    .flatMap((value) => value.split(','))
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '')

/** The subprotocols without the one that carries a token: no one else may see it. */
export const withoutTokenProtocol = (values: readonly string[]): string[] =>
  protocolsOf(values).filter((protocol) => !protocol.startsWith(tokenPrefix))

/** The token that a browser, which cannot set headers, sends as a WebSocket subprotocol. */
export function websocketToken(request: AuthenticationRequest): string | undefined {
  if (request.headers[header] === undefined || !isWebsocket(request)) return undefined
  const protocols = protocolsOf(rawHeaderValues(request.rawHeaders, header))
  const [encoded, ...others] = protocols.filter((protocol) => protocol.startsWith(tokenPrefix))
  if (encoded === undefined) return undefined
  if (others.length > 0) throw unauthorized('websocket: more than one token')
  if (protocols.length === 1) throw unauthorized('websocket: missing additional subprotocol')
  return decoded(encoded.slice(tokenPrefix.length))
}

function isWebsocket({ headers }: AuthenticationRequest): boolean {
  const upgrades = headers.connection?.toLowerCase().split(',') ?? []
  if (!upgrades.some((token) => token.trim() === 'upgrade')) return false
  return headers.upgrade?.toLowerCase() === 'websocket'
}

function decoded(encoded: string): string {
  const bytes = Buffer.from(encoded, 'base64url')
  // Buffer skips what is not base64url; what does not come back the same was not.
  if (encoded === '' || bytes.toString('base64url') !== encoded) {
    throw unauthorized('websocket: invalid token encoding')
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unauthorized('websocket: the token is not UTF-8')
  }
}
