import type { IncomingMessage } from 'node:http'
import { rawHeaderValues } from '../../http/index.ts'
import { GuardRefused, malformed } from './refusal.ts'

const protocols: ReadonlyMap<string, string> = new Map([
  ['websocket', 'websocket'],
  ['spdy/3.1', 'SPDY/3.1'],
])

type Request = Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'method'>

/**
 * Checks a request for another protocol and returns which one. Only known ones pass: behind any other, such as
 * h2c, requests without a token could hide on the raw connection.
 */
export function checkUpgrade(request: Request): string {
  const { rawHeaders } = request
  const [asked = '', ...others] = rawHeaderValues(rawHeaders, 'upgrade')
  const protocol = protocols.get(asked.trim().toLowerCase())
  if (others.length > 0 || protocol === undefined)
    throw malformed('the only protocols to upgrade to are websocket and SPDY/3.1, one at a time')
  if (request.httpVersion !== '1.1') throw malformed('upgrades need HTTP/1.1')
  if (hasBody(rawHeaders)) throw malformed('a request for an upgrade has no body')
  if (protocol === 'websocket') checkWebsocket(request)
  return protocol
}

function hasBody(rawHeaders: readonly string[]): boolean {
  const lengths = rawHeaderValues(rawHeaders, 'content-length')
  return (
    rawHeaderValues(rawHeaders, 'transfer-encoding').length > 0 ||
    lengths.some((length) => length.trim() !== '0')
  )
}

function checkWebsocket({ rawHeaders, method }: Request): void {
  if (method !== 'GET') throw malformed('a WebSocket begins with GET')
  const [version, ...versions] = rawHeaderValues(rawHeaders, 'sec-websocket-version')
  if (version?.trim() !== '13' || versions.length > 0)
    throw new GuardRefused(426, 'websocket-version', 'the WebSocket version must be 13', {
      'Sec-WebSocket-Version': '13',
    })
  const [key, ...keys] = rawHeaderValues(rawHeaders, 'sec-websocket-key')
  if (keys.length > 0 || !/^[A-Za-z0-9+/]{22}==$/.test(key?.trim() ?? ''))
    throw malformed('a WebSocket needs one Sec-WebSocket-Key of 16 bytes')
}
