import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Http2ServerResponse } from 'node:http2'

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]
type Callback = (error?: Error | null) => void

const held = Symbol('heldBody')
const unread = Symbol('onUnread')

/** A body that is kept in memory until its end. */
interface HeldBody {
  readonly chunks: Buffer[]
  bytes: number
  readonly maxBytes: number
  readonly complete: (body: Buffer) => void
}

interface EventfulResponse extends ServerResponse {
  [held]?: HeldBody | undefined
  [unread]?: () => void
}

/** Adds what Node.js has no event for: `headers`, and a body that is held until its end. */
const eventful = (Base: typeof ServerResponse): typeof ServerResponse =>
  class extends Base {
    declare [held]?: HeldBody | undefined

    // Every way to send the headers leads here, the implicit ones too.
    override writeHead(code: number, reason?: string | Headers, headers?: Headers): this {
      if (this[held] !== undefined) {
        this.statusCode = code
        setHeaders(this, headers ?? reason)
        return this
      }
      if (typeof reason === 'string') super.writeHead(code, reason, headers)
      else super.writeHead(code, reason)
      this.emit('headers')
      return this
    }

    override write(chunk: unknown, encoding?: BufferEncoding | Callback, done?: Callback): boolean {
      const body = this[held]
      if (body === undefined) return super.write(chunk, encoding as BufferEncoding, done)
      hold(body, chunk)
      return true
    }

    override end(chunk?: unknown, encoding?: BufferEncoding | Callback, done?: Callback): this {
      const body = this[held]
      if (body === undefined) return super.end(chunk, encoding as BufferEncoding, done)
      hold(body, chunk)
      this[held] = undefined
      const whole = Buffer.concat(body.chunks)
      body.complete(whole)
      return super.end(whole)
    }
  } as unknown as typeof ServerResponse

/** The responses of our HTTP/1.1 servers. */
export const EventfulServerResponse = eventful(ServerResponse)

/** The responses of our HTTP/2 servers: an unrelated type of the same shape. */
export const EventfulHttp2Response = eventful(
  Http2ServerResponse as unknown as typeof ServerResponse,
) as unknown as typeof Http2ServerResponse

function setHeaders(response: ServerResponse, headers: string | Headers | undefined): void {
  if (typeof headers !== 'object' || Array.isArray(headers)) return
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) response.setHeader(name, value)
}

function hold(body: HeldBody, chunk: unknown): void {
  if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return
  const bytes = Buffer.from(chunk as string)
  body.bytes += bytes.length
  if (body.bytes > body.maxBytes) throw new Error('the response is too large to be held')
  body.chunks.push(bytes)
}

/** Calls `listener` once, when status and headers of the response are sent; only for responses of the classes above. */
export function onHeaders(response: ServerResponse, listener: () => void): void {
  response.once('headers', listener)
}

/**
 * Keeps status, headers and body in memory until the end, when `complete` gets the whole body and can still set headers.
 * A body of more than `maxBytes` is an error of the handler.
 */
export function holdResponse(
  response: ServerResponse,
  { maxBytes, complete }: Pick<HeldBody, 'maxBytes' | 'complete'>,
): void {
  const eventfulResponse: EventfulResponse = response
  eventfulResponse[held] = { chunks: [], bytes: 0, maxBytes, complete }
}

/** Calls `listener` whenever a response waits until its client has read what is written. */
export function onUnread(response: ServerResponse, listener: () => void): void {
  const eventfulResponse: EventfulResponse = response
  eventfulResponse[unread] = listener
}

/** Reports that written bytes wait until the client of a response reads them. */
export function reportUnread(response: ServerResponse): void {
  const eventfulResponse: EventfulResponse = response
  eventfulResponse[unread]?.()
}

/** Resolves when the client has read what was written, or has disconnected. */
export function waitForClient(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve()
  reportUnread(response)
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
