import type { ServerResponse } from 'node:http'

const lineBreak = '\r\n'
let lastData: Buffer | undefined
let lastChunk = Buffer.alloc(0)

/** Longer pieces are framed by Node, which does not copy them: a copy for each client would be. */
const maxCopiedBytes = 64 * 1024

/** One chunk as HTTP/1.1 frames it; the same bytes for whoever asks for the same data next. */
function chunkOf(data: Buffer): Buffer {
  if (data === lastData) return lastChunk
  const head = data.length.toString(16) + lineBreak
  lastChunk = Buffer.allocUnsafe(head.length + data.length + lineBreak.length)
  lastChunk.write(head, 'latin1')
  data.copy(lastChunk, head.length)
  lastChunk.write(lineBreak, head.length + data.length, 'latin1')
  lastData = data
  return lastChunk
}

/**
 * Writes a piece of an answer whose head is sent and which many clients get. Node would frame it
 * anew for each, in three pieces, and send to the first client only when all have been served.
 */
export function writeShared(response: ServerResponse, data: Buffer): void {
  if (data.length === 0) return // as a chunk it would be the end
  const { socket } = response
  // Without a socket, an earlier answer on this connection is still on its way.
  const isShort = data.length <= maxCopiedBytes
  if (isShort && response.chunkedEncoding && socket?.writable) socket.write(chunkOf(data))
  else response.write(data)
}
