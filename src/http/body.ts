import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { ApiError, badRequest, SallyportError, systemErrorCode } from '../core/index.ts'

/** The client went away before its request was complete; there is nobody to answer. */
export class ClientGone extends SallyportError {
  readonly code = 'CLIENT_GONE'
}

/** What a body may cost. */
export interface BodyLimits {
  /** Of the body as sent, and of what it unpacks to. */
  readonly maxBytes: number
  /** For the whole body. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const unpack = promisify(gunzip)

/**
 * Reads the whole body of a request and unpacks gzip. A body that comes too slowly is a `Timeout` (504):
 * that is what kube-apiserver answers when a request takes too long, and Status has no reason for 408.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const encoding = contentEncoding(request)
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > limits.maxBytes) throw tooLarge(limits.maxBytes)
  const body = await collect(request, limits)
  return encoding === 'gzip' && body.length > 0 ? inflate(body, limits.maxBytes) : body
}

function contentEncoding(request: IncomingMessage): 'gzip' | 'identity' {
  const value = (request.headers['content-encoding'] ?? '').trim().toLowerCase()
  if (value === '' || value === 'identity') return 'identity'
  if (value === 'gzip' || value === 'x-gzip') return 'gzip'
  throw new ApiError(
    'UnsupportedMediaType',
    `the content encoding ${JSON.stringify(value.slice(0, 64))} is not supported: send gzip or none`,
  )
}

async function inflate(body: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await unpack(body, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (systemErrorCode(cause) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw badRequest('the body is not valid gzip, although Content-Encoding says so')
  }
}

const tooLarge = (maxBytes: number): ApiError =>
  new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`)

function collect(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes, timeoutMs, signal } = limits
  return new Promise<Buffer>((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (error?: Error): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      if (!error) {
        resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size))
        return
      }
      request.resume() // what still comes is dropped; a paused stream would block the connection
      reject(error)
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > maxBytes) settle(tooLarge(maxBytes))
      else chunks.push(chunk)
    }
    const onClose = (): void => settle(new ClientGone('the client went away during its request'))
    // A stream of HTTP/2 that the client resets ends like a complete one: half a body, then `end`.
    const onEnd = (): void => (request.aborted ? onClose() : settle())
    const onAbort = (): void =>
      settle(new ApiError('ServiceUnavailable', 'the server is shutting down'))
    const timer = setTimeout(() => settle(tooSlow(timeoutMs)), timeoutMs)
    // An error is always followed by `close`, which settles; without a listener it would be thrown.
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    else if (request.destroyed) onClose()
  })
}

const ignore = (): void => {}

const tooSlow = (timeoutMs: number): ApiError =>
  new ApiError('Timeout', `the request body did not arrive within ${timeoutMs / 1000} seconds`)

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
