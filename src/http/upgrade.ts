import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { UpgradingClient } from '../core/index.ts'
import { rawHeaderValues } from './headers.ts'

export type { UpgradingClient } from '../core/index.ts'

/** Which protocol a request may change to, or why it may not. */
export type UpgradeVerdict =
  | { readonly protocol: string; readonly problem?: undefined }
  | {
      readonly problem: string
      readonly status: 400 | 426
      /** For the response. */
      readonly headers: Readonly<Record<string, string>>
    }

/** The protocols that Kubernetes and its add-ons speak on a connection that began as HTTP. */
const protocols: ReadonlyMap<string, string> = new Map([
  ['websocket', 'websocket'],
  ['spdy/3.1', 'SPDY/3.1'],
])

const malformed = (problem: string): UpgradeVerdict => ({ problem, status: 400, headers: {} })

/** RFC 6455 §4.4 and RFC 9110 §15.5.22: the client is told which version there is. */
const otherVersion: UpgradeVerdict = {
  problem: 'the WebSocket version must be 13',
  status: 426,
  headers: {
    Connection: 'Upgrade, close',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
  },
}

/**
 * Judges a request for another protocol. Only known ones pass: on a raw connection with the user's
 * rights, a second request could hide behind any other.
 */
export function judgeUpgrade(
  request: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'method'>,
): UpgradeVerdict {
  const { rawHeaders } = request
  const [requested = '', ...others] = rawHeaderValues(rawHeaders, 'upgrade')
  const protocol = protocols.get(requested.trim().toLowerCase())
  if (others.length > 0 || protocol === undefined)
    return malformed('the only protocols to upgrade to are websocket and SPDY/3.1, one at a time')
  if (request.httpVersion !== '1.1') return malformed('upgrades need HTTP/1.1')
  if (hasBody(rawHeaders)) return malformed('a request for an upgrade has no body')
  return (protocol === 'websocket' && problemOfWebsocket(request)) || { protocol }
}

function hasBody(rawHeaders: readonly string[]): boolean {
  const lengths = rawHeaderValues(rawHeaders, 'content-length')
  return (
    rawHeaderValues(rawHeaders, 'transfer-encoding').length > 0 ||
    lengths.some((length) => length.trim() !== '0')
  )
}

function problemOfWebsocket({
  rawHeaders,
  method,
}: Pick<IncomingMessage, 'rawHeaders' | 'method'>): UpgradeVerdict | undefined {
  if (method !== 'GET') return malformed('a WebSocket begins with GET')
  const [version, ...versions] = rawHeaderValues(rawHeaders, 'sec-websocket-version')
  if (version?.trim() !== '13' || versions.length > 0) return otherVersion
  const [key, ...keys] = rawHeaderValues(rawHeaders, 'sec-websocket-key')
  if (keys.length > 0 || !/^[A-Za-z0-9+/]{22}==$/.test(key?.trim() ?? ''))
    return malformed('a WebSocket needs one Sec-WebSocket-Key of 16 bytes')
  return undefined
}

/** The client of an `upgrade` event of Node's server, which hands over a bare socket. */
export function upgradingClient(request: IncomingMessage, head: Buffer): UpgradingClient {
  const { socket } = request
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => {
    // What the client has sent behind its request is dropped: unread, it would make the kernel reset the connection.
    socket.resume()
    socket.destroySoon()
  })
  const claim = (): Duplex => {
    if (socket.destroyed) throw new Error('the client has disconnected')
    response.detachSocket(socket)
    return socket
  }
  return { response, head, claim }
}
