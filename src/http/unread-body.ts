import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'

/**
 * Ends a request that was answered before its body had arrived. HTTP/1.1: the rest is read and
 * dropped for a moment, because a connection that is closed with unread data takes the answer with it.
 */
export function discardUnreadBody(
  request: IncomingMessage,
  response: ServerResponse,
  lingerMs: number,
): void {
  if (request.complete) return
  const stream = http2StreamOf(response)
  if (stream) {
    // Without a body there is nothing to end, although nobody has read as far as that.
    if (!stream.endAfterHeaders) stream.close()
    return
  }
  request.resume()
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy()
  }, lingerMs)
  timer.unref()
  request.once('close', () => clearTimeout(timer))
}

function http2StreamOf(
  response: ServerResponse | Http2ServerResponse,
): Http2ServerResponse['stream'] | undefined {
  return 'stream' in response ? response.stream : undefined
}
