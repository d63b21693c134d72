import { type ClientHttp2Stream, constants } from 'node:http2'
import { Readable } from 'node:stream'
import { ConnectionReset } from './try-failed.ts'

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
