import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { ApiError, badRequest, HeldChunks, SallyportError, systemErrorCode } from '../core/index.ts'
import { checkTrailers } from './deciding-headers.ts'

/** The client went away before its request was complete; there is nobody to answer. */
export class ClientGone extends SallyportError {
  readonly code = 'CLIENT_GONE'
}

/**
 * A gzip body may unpack to this many times its size, and to `minInflatedBytes` in any case. JSON of
 * real objects packs 1:3 to 1:15. Text that packs better, as a ConfigMap of repeated lines, is sent
 * without gzip, as kubectl and client-go send everything.
 */
const maxInflationRatio = 20
const minInflatedBytes = 16 * 1024

/** What a body may cost. */
export interface BodyLimits {
  /** Of the body as sent, and of what it unpacks to. */
  readonly maxBytes: number
  /** For the whole body. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Sees how much has arrived; throws to stop reading. */
  readonly onBytes?: (received: number) => void
}

const unpack = promisify(gunzip)

/** Bodies that have arrived as a whole, as they were sent. */
const received = new WeakMap<IncomingMessage, Buffer>()

/** Whether a request has a body, as far as its head says. */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined) return true
  const length = headers['content-length']
  if (length !== undefined) return length !== '0'
  return 'stream' in request && !(request.stream as Http2ServerResponse['stream']).endAfterHeaders
}

/** Waits for the whole body of a request, which `readBody` then has at hand. Rejects as `readBody` does. */
export async function receiveBody(request: IncomingMessage, limits: BodyLimits): Promise<void> {
  checkDeclaredLength(request, limits)
  const body = await collect(request, limits)
  checkTrailers(request.rawTrailers)
  received.set(request, body)
}

/** Lets go of a body that `receiveBody` has kept: its request may stay until the client has read the response. */
export function forgetBody(request: IncomingMessage): void {
  received.delete(request)
}

function checkDeclaredLength({ headers }: IncomingMessage, { maxBytes }: BodyLimits): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
}

/**
 * Reads the whole body of a request and unpacks gzip. A body that comes too slowly is a `Timeout` (504):
 * that is what kube-apiserver answers when a request takes too long, and Status has no reason for 408.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const encoding = contentEncoding(request)
  checkDeclaredLength(request, limits)
  const body = received.get(request) ?? (await collect(request, limits))
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

/** Unpacks in zlib's own thread, and stops at the limit. */
async function inflate(body: Buffer, maxBytes: number): Promise<Buffer> {
  const maxInflated = Math.max(minInflatedBytes, maxInflationRatio * body.length)
  const maxOutputLength = Math.min(maxBytes, maxInflated)
  try {
    return await unpack(body, { maxOutputLength })
  } catch (cause) {
    if (systemErrorCode(cause) === 'ERR_BUFFER_TOO_LARGE') {
      if (maxOutputLength === maxBytes) throw tooLarge(maxBytes)
      throw new ApiError(
        'RequestEntityTooLarge',
        `Request entity too large: a gzip body of ${body.length} bytes may unpack to ${maxOutputLength} bytes; send it without Content-Encoding`,
      )
    }
    throw badRequest('the body is not valid gzip, although Content-Encoding says so')
  }
}

const tooLarge = (maxBytes: number): ApiError =>
  new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`)

function collect(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes, timeoutMs, signal, onBytes } = limits
  return new Promise<Buffer>((resolve, reject) => {
    const chunks = new HeldChunks()
    const settle = (error?: Error): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      if (!error) {
        resolve(joined(chunks.take()))
        return
      }
      request.resume() // what still comes is dropped; a paused stream would block the connection
      reject(error)
    }
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk)
      if (chunks.bytes > maxBytes) {
        settle(tooLarge(maxBytes))
        return
      }
      try {
        onBytes?.(chunks.bytes)
      } catch (error) {
        settle(error instanceof Error ? error : new Error('the body is rejected', { cause: error }))
      }
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

const joined = ([first = Buffer.alloc(0), ...others]: readonly Buffer[]): Buffer =>
  others.length === 0 ? first : Buffer.concat([first, ...others])

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
