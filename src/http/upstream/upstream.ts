import { type Duplex, Readable } from 'node:stream'
import { onAbort, SallyportError } from '../../core/index.ts'
import type { Meter } from '../copy-stream.ts'
import { gatherChunks } from '../gather-chunks.ts'

/** A request as it is sent to an upstream. */
export interface UpstreamRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Flat, with Host; without the headers of a connection and of framing, which the upstream adds. */
  readonly headers: readonly string[]
  /** Absent if the request has none. */
  readonly body?: RequestBody | undefined
  /** The protocol to upgrade to; the connection is then not shared with other requests. */
  readonly upgrade?: string | undefined
}

/** The body of a request, sent as it arrives. */
export interface RequestBody {
  readonly stream: Readable
  /** Absent: sent in chunks. */
  readonly length?: number | undefined
  readonly meter?: Meter | undefined
}

/** The head of a final response. */
export interface ResponseHead {
  readonly status: number
  readonly reason: string
  /** Flat, as received. */
  readonly rawHeaders: readonly string[]
  /** Of the body, if it is known. */
  readonly length: number | undefined
  readonly isChunked: boolean
}

/** Receives the response to a request, part by part. */
export interface ResponseListener {
  head(head: ResponseHead): void
  body(chunk: Buffer): void
  /** The response is complete. */
  end(trailers: readonly string[]): void
  /** Everything that has arrived so far was delivered; called after each read. */
  settle(): void
  /** In place of everything else, after a 101: the connection now belongs to the listener. */
  upgraded?(head: ResponseHead, connection: Duplex): void
  /** Nothing more will come; `isStale` if a kept connection was closed before the first byte of a response. */
  failed(error: Error, isStale: boolean): void
}

/** A request that is under way. */
export interface UpstreamExchange {
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Closes the connection unless the response is complete. */
  cancel(): void
}

/** A server that requests are forwarded to, and the connections to it. */
export interface Upstream {
  /** Sends a request. The listener is never called before this returns. @throws RequestInvalid */
  send(request: UpstreamRequest, listener: ResponseListener): UpstreamExchange
  /** Closes idle connections and keeps none from now on; requests under way finish. */
  close(): void
  /** Closes every connection. */
  destroy(): void
}

/** A response that cannot be forwarded: not HTTP, or two readers could read it in two ways. Never quotes it. */
export class ResponseInvalid extends SallyportError {
  readonly code = 'UPSTREAM_RESPONSE_INVALID'
}

/** A request that cannot be written as HTTP/1.1. */
export class RequestInvalid extends SallyportError {
  readonly code = 'UPSTREAM_REQUEST_INVALID'
}

/** The body of a response as a stream; destroying it before its end cancels the exchange. */
export class ResponseBody extends Readable {
  readonly #exchange: UpstreamExchange

  constructor(exchange: UpstreamExchange) {
    super()
    this.#exchange = exchange
    gatherChunks(this)
  }

  receive(chunk: Buffer): void {
    if (!this.destroyed && !this.push(chunk)) this.#exchange.pause()
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

/** Sends a request and returns the status of the response. A body that does not come with its head is not read. */
export function requestStatus(
  upstream: Upstream,
  request: UpstreamRequest,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let received: number | undefined
    let isComplete = false
    const exchange = upstream.send(request, {
      head: ({ status }) => {
        received = status
      },
      body: () => {},
      end: () => {
        isComplete = true
      },
      settle: () => {
        if (received === undefined) return
        forget()
        resolve(received)
        if (!isComplete) exchange.cancel()
      },
      failed: (error) => {
        forget()
        reject(error)
      },
    })
    const abort = (): void => {
      exchange.cancel()
      reject(signal.reason)
    }
    const forget = onAbort(signal, abort)
    if (signal.aborted) abort()
  })
}
