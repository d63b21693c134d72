import type { IncomingMessage } from 'node:http'
import { takesTrailers } from '../../http/index.ts'
import type { GuardedRequest } from './read-request.ts'

/** Methods that Node would otherwise give a body of chunks. */
const usuallyWithBody = new Set(['POST', 'PUT', 'PATCH'])

/** What came without a claim to an identity, then ours: nothing that a client sends can take it away again. */
export function outgoing(
  request: IncomingMessage,
  read: GuardedRequest,
  identity: readonly string[],
): string[] {
  const { headers } = read
  if (read.isChunked) headers.push('Transfer-Encoding', 'chunked')
  else if (!read.hasLength && usuallyWithBody.has(request.method ?? ''))
    headers.push('Content-Length', '0')
  if (request.headers['te'] !== undefined && takesTrailers(request.rawHeaders))
    headers.push('TE', 'trailers')
  const hop = request.socket.remoteAddress
  const before = request.headers['x-forwarded-for']
  if (hop !== undefined) headers.push('X-Forwarded-For', before ? `${String(before)}, ${hop}` : hop)
  for (const item of identity) headers.push(item)
  return headers
}
