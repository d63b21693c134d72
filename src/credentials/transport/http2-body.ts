import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import { Readable } from 'node:stream'
import { ConnectionReset } from './errors.ts'

/**
 * The body of an HTTP/2 answer. Node ends a stream in good order when its connection is lost or the
 * server cancels it, so that a reader takes half an answer for a whole one; this one fails then.
 */
export class Http2Body extends Readable {
  readonly #stream: ClientHttp2Stream
  #failure: unknown

  constructor(stream: ClientHttp2Stream) {
    super()
    this.#stream = stream
    stream.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause()
    })
    stream.on('end', () => {
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR) this.push(null)
    })
    stream.on('error', (error) => {
      this.#failure = error
    })
    stream.on('close', () => {
      if (!this.readableEnded && !this.#isWhole())
        this.destroy(new ConnectionReset('aborted', this.#failure))
    })
    stream.pause()
    // As with HTTP/1.1: an answer that nobody reads may fail without taking the process with it.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#stream.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Never after the end: servers close a connection whose streams are reset too often.
    if (!this.readableEnded && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL)
    this.#stream.resume() // what is still on its way must not hold the connection's window
    done(error)
  }

  #isWhole(): boolean {
    return this.#failure === undefined && this.#stream.rstCode === constants.NGHTTP2_NO_ERROR
  }
}

/** How a connection that carries a request is asked whether its server is still there. */
export interface Heartbeat {
  /** So often. */
  readonly everyMs: number
  /** Without an answer for so long it is dead. */
  readonly withinMs: number
}

/** As Go's client does it: a watch may be silent for hours, and something on the way may have forgotten it. */
export const defaultHeartbeat: Heartbeat = { everyMs: 30_000, withinMs: 15_000 }

/** Asks until it is stopped; a connection that does not answer is cut, and its requests fail. */
export function startHeartbeat(
  session: ClientHttp2Session,
  { everyMs, withinMs }: Heartbeat,
): () => void {
  let deadline: NodeJS.Timeout | undefined
  const ask = (): void => {
    if (deadline || session.destroyed) return
    const isSent = session.ping(() => {
      clearTimeout(deadline)
      deadline = undefined
    })
    if (!isSent) return
    const silent = `the server has not answered a ping within ${withinMs / 1000} s`
    deadline = setTimeout(() => session.destroy(new ConnectionReset(silent)), withinMs).unref()
  }
  const timer = setInterval(ask, everyMs).unref()
  return () => {
    clearInterval(timer)
    clearTimeout(deadline)
  }
}
