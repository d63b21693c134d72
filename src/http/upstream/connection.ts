import type { Socket } from 'node:net'
import { type Duplex, Writable } from 'node:stream'
import type { Clock } from '../../core/index.ts'
import { copyStream } from '../copy-stream.ts'
import { ResponseParser } from './response-parser.ts'
import {
  type RequestBody,
  RequestInvalid,
  type ResponseListener,
  type UpstreamExchange,
  type UpstreamRequest,
} from './upstream.ts'

/** Any stream; only sockets have `ref` and `unref`. */
export type UpstreamStream = Duplex & Partial<Pick<Socket, 'ref' | 'unref'>>

/** What a connection reports to its pool. */
export interface ConnectionOwner {
  readonly clock: Clock
  /** The connection can carry the next request. */
  readonly free: () => void
  readonly gone: () => void
}

/** Less than servers keep an idle connection, so that requests are rarely written into a closed one. */
const maxIdleMs = 30_000

/** A request and whatever it waits for now: a free connection, a new one, or the response. */
export class Exchange implements UpstreamExchange {
  readonly request: UpstreamRequest
  readonly head: string
  readonly listener: ResponseListener
  /** Absent once the response is complete: the connection may then carry another request. */
  carrier: Partial<UpstreamExchange> | undefined

  constructor(request: UpstreamRequest, listener: ResponseListener) {
    this.request = request
    this.head = requestHead(request)
    this.listener = listener
  }

  pause(): void {
    this.carrier?.pause?.()
  }

  resume(): void {
    this.carrier?.resume?.()
  }

  cancel(): void {
    this.carrier?.cancel?.()
  }
}

/** One HTTP/1.1 connection with at most one request at a time. */
export class Connection implements UpstreamExchange {
  readonly #stream: UpstreamStream
  readonly #owner: ConnectionOwner
  /** Until when an idle connection may be used, on the monotonic clock. */
  #idleUntil = Number.POSITIVE_INFINITY
  #exchange: Exchange | undefined
  #parser: ResponseParser | undefined
  #body: BodySink | undefined
  #served = 0
  #hasReceived = false
  #allowedIdleMs = maxIdleMs

  constructor(stream: UpstreamStream, owner: ConnectionOwner) {
    this.#stream = stream
    this.#owner = owner
    stream
      .on('data', this.#onData)
      .on('error', this.#onError)
      .on('end', this.#onEnd)
      .on('close', this.#onClose)
  }

  /** Whether the idle connection can be used at this time of the monotonic clock. */
  isUsableAt(now: number): boolean {
    return now < this.#idleUntil && this.#stream.writable
  }

  begin(exchange: Exchange): void {
    const { method, body, upgrade } = exchange.request
    exchange.carrier = this
    this.#exchange = exchange
    this.#hasReceived = false
    const kind = { isHead: method === 'HEAD', isUpgrade: upgrade !== undefined }
    this.#parser = new ResponseParser(exchange.listener, kind)
    this.#stream.ref?.()
    this.#stream.write(exchange.head, 'latin1')
    this.#body = body && sendBody(body, this.#stream, exchange)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  cancel(): void {
    this.#stream.destroy()
  }

  /** The request that it carried is over. */
  #release(): Exchange | undefined {
    const exchange = this.#exchange
    this.#exchange = undefined
    if (exchange) exchange.carrier = undefined
    return exchange
  }

  readonly #onData = (bytes: Buffer): void => {
    const exchange = this.#exchange
    const parser = this.#parser
    if (!exchange || !parser) {
      // No request is under way: these bytes would be taken for the response to the next one.
      this.#stream.destroy()
      return
    }
    this.#hasReceived = true
    try {
      parser.take(bytes)
    } catch (error) {
      this.#onError(error instanceof Error ? error : new Error(String(error)))
      this.#stream.destroy()
      return
    }
    if (parser.upgraded) {
      this.#handOver(parser.upgraded)
      return
    }
    exchange.listener.settle()
    if (parser.isDone) this.#complete(parser)
  }

  readonly #onEnd = (): void => {
    if (this.#parser?.mayEnd) {
      this.#parser.close()
      this.#release()?.listener.settle()
    }
    // A response that breaks off is reported when the stream is closed.
    this.#stream.destroy()
  }

  readonly #onError = (error: Error): void => {
    this.#release()?.listener.failed(error, this.#served > 0 && !this.#hasReceived)
  }

  readonly #onClose = (): void => {
    this.#body?.destroy()
    this.#onError(new Error('the upstream closed the connection'))
    this.#owner.gone()
  }

  /** The stream speaks another protocol now. */
  #handOver({ head, rest }: NonNullable<ResponseParser['upgraded']>): void {
    this.#stream
      .off('data', this.#onData)
      .off('error', this.#onError)
      .off('end', this.#onEnd)
      .off('close', this.#onClose)
    this.#stream.pause()
    if (rest.length > 0) this.#stream.unshift(rest)
    const exchange = this.#release()
    this.#owner.gone()
    if (exchange?.listener.upgraded) exchange.listener.upgraded(head, this.#stream)
    else this.#stream.destroy()
  }

  #complete(parser: ResponseParser): void {
    this.#release()
    this.#served += 1
    // A second less, since the server counts from its last byte and we from the arrival of it.
    if (parser.keepAliveMs !== undefined)
      this.#allowedIdleMs = Math.min(maxIdleMs, parser.keepAliveMs - 1000)
    // A server that has responded reads no more: what is left of the body would be taken for the next request.
    const isSent = this.#body?.isSent !== false
    if (!isSent) this.#body?.destroy()
    this.#body = undefined
    const isKept = parser.keepsConnection && isSent && this.#allowedIdleMs > 0
    if (!isKept || this.#stream.destroyed) {
      this.#stream.destroy()
      return
    }
    this.#stream.resume()
    this.#stream.unref?.()
    this.#idleUntil = this.#owner.clock.monotonic() + this.#allowedIdleMs
    this.#owner.free()
  }
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const invalidInTarget = /[^\x21-\xff]/
const invalidInValue = /[^\t\x20-\x7e\x80-\xff]/
/** Methods for which servers expect a length even without a body (RFC 9110 §8.6). */
const bodyMethods = new Set(['POST', 'PUT', 'PATCH'])

/** The request line and headers, to be written as latin1. @throws RequestInvalid for what could be read as more than that */
export function requestHead({ method, path, headers, body, upgrade }: UpstreamRequest): string {
  if (!token.test(method) || path === '' || invalidInTarget.test(path))
    throw new RequestInvalid('the request line is invalid')
  let head = `${method} ${path} HTTP/1.1\r\n`
  for (let index = 0; index + 1 < headers.length; index += 2)
    head += callersHeader(headers[index] ?? '', headers[index + 1] ?? '')
  if (body) head += framingOf(body)
  else if (bodyMethods.has(method)) head += 'Content-Length: 0\r\n'
  return upgrade === undefined
    ? `${head}Connection: keep-alive\r\n\r\n`
    : `${head}Connection: Upgrade\r\n${headerLine('Upgrade', upgrade)}\r\n`
}

/** Written here only: a second one would be another request to some reader. */
const ownHeaders = new Set(['upgrade', 'connection', 'content-length', 'transfer-encoding'])
const ownLengths = new Set([...ownHeaders].map(({ length }) => length))

function callersHeader(name: string, value: string): string {
  if (ownLengths.has(name.length) && ownHeaders.has(name.toLowerCase()))
    throw new RequestInvalid('the request has a header of the connection or of framing')
  return headerLine(name, value)
}

function headerLine(name: string, value: string): string {
  if (!token.test(name) || invalidInValue.test(value))
    throw new RequestInvalid('the request has an invalid header')
  return `${name}: ${value}\r\n`
}

const framingOf = ({ length }: RequestBody): string =>
  length === undefined ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${length}\r\n`

/** Sends a body behind its head; a body that breaks off ends the connection, and is never taken for a complete one. */
function sendBody(body: RequestBody, connection: Duplex, exchange: Exchange): BodySink {
  const { stream, length, meter } = body
  const sink = new BodySink(connection, length)
  const breakOff = (): void => exchange.cancel()
  sink.once('error', breakOff)
  stream.once('close', () => {
    if (!sink.writableEnded) breakOff()
  })
  if (stream.destroyed) breakOff()
  copyStream(stream, sink, meter, () => {
    // A stream of HTTP/2 that the client resets ends like a complete one.
    if ('aborted' in stream && stream.aborted === true)
      sink.destroy(new Error('the body breaks off'))
  })
  return sink
}

/** Frames a body on a connection, which stays open behind it. */
class BodySink extends Writable {
  readonly #connection: Duplex
  /** Of a body with a length: what is still to come. */
  #left: number | undefined

  constructor(connection: Duplex, length: number | undefined) {
    super()
    this.#connection = connection
    this.#left = length
  }

  /** Whether the server has been sent all of it. */
  get isSent(): boolean {
    return this.#left === undefined ? this.writableFinished : this.#left === 0
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    // An empty chunk would end the body.
    if (chunk.length === 0) {
      done()
      return
    }
    if (this.#left === undefined) this.#writeChunk(chunk)
    else {
      this.#left -= chunk.length
      if (this.#left < 0) {
        done(new Error('the body is longer than its length'))
        return
      }
      this.#connection.write(chunk)
    }
    this.#whenDrained(done)
  }

  override _final(done: (error?: Error) => void): void {
    if (this.#left === undefined) this.#connection.write('0\r\n\r\n', 'latin1')
    done(this.#left ? new Error('the body is shorter than its length') : undefined)
  }

  #writeChunk(chunk: Buffer): void {
    this.#connection.cork()
    this.#connection.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    this.#connection.write(chunk)
    this.#connection.write('\r\n', 'latin1')
    this.#connection.uncork()
  }

  #whenDrained(done: () => void): void {
    if (this.#connection.writableNeedDrain) this.#connection.once('drain', done)
    else done()
  }
}
