import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { gatherChunks, rawHeaderValues } from '../../../http/index.ts'
import type { WireExchange } from '../../wire/index.ts'

/** What a backend has answered, whichever way it was asked. */
export interface BackendAnswer {
  readonly status: number
  /** Flat, as they came. */
  readonly rawHeaders: readonly string[]
  readonly isChunked: boolean
  /** All of it, or as it comes; closed before it has ended if it breaks off. */
  readonly body: Buffer | Readable
  /** Flat, as they came; known when the body has ended. */
  readonly trailers: () => readonly string[]
}

/** An answer that Node's client has read. */
export function answerIn(message: IncomingMessage): BackendAnswer {
  gatherChunks(message)
  return {
    status: message.statusCode ?? 502,
    rawHeaders: message.rawHeaders,
    isChunked: rawHeaderValues(message.rawHeaders, 'transfer-encoding').length > 0,
    body: message,
    trailers: () => message.rawTrailers,
  }
}

/** A body that comes by the wire. */
export class WireBody extends Readable {
  readonly #exchange: WireExchange

  constructor(exchange: WireExchange) {
    super()
    this.#exchange = exchange
    gatherChunks(this)
  }

  receive(chunk: Buffer): void {
    if (!this.destroyed && !this.push(chunk)) this.#exchange.hold()
  }

  finish(): void {
    if (!this.destroyed) this.push(null)
  }

  override _read(): void {
    this.#exchange.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#exchange.cancel()
    done(error)
  }
}
