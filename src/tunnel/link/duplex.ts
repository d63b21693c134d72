import { Duplex } from 'node:stream'
import { HeldChunks } from '../../core/index.ts'
import type { ByteStream } from './byte-stream.ts'

const highWaterBytes = 1024 * 1024

class ByteStreamDuplex extends Duplex {
  readonly #stream: ByteStream
  #unreported = 0
  /** Bytes that arrive between two reads of the Duplex. */
  readonly #received = new HeldChunks()
  #isReadWaiting = false
  #writeDone: (() => void) | undefined
  #isClosed = false

  constructor(stream: ByteStream) {
    super({ allowHalfOpen: true, highWaterMark: 64 * 1024 })
    this.#stream = stream
    stream.start({
      data: (chunk) => {
        this.#unreported += chunk.length
        this.#receive(chunk)
      },
      finished: () => {
        this.#pushReceived()
        this.push(null)
      },
      drained: () => this.#resumeWriter(),
      closed: (error) => {
        this.#isClosed = true
        this.#resumeWriter()
        if (error) this.destroy(error)
        else this.#ended()
      },
    })
  }

  /** After an orderly end, received bytes can still be read. */
  #ended(): void {
    if (this.readableEnded || this.destroyed) {
      this.destroy()
      return
    }
    this.#pushReceived()
    if (this.readableFlowing !== false || this.readableLength > 0)
      this.once('end', () => this.destroy())
    this.push(null)
  }

  #release(): void {
    const bytes = this.#unreported
    this.#unreported = 0
    if (bytes > 0) this.#stream.consumed(bytes)
  }

  #resumeWriter(): void {
    const done = this.#writeDone
    this.#writeDone = undefined
    done?.()
  }

  #receive(chunk: Buffer): void {
    if (!this.#isReadWaiting) {
      this.#received.push(chunk)
      return
    }
    this.#isReadWaiting = false
    if (this.push(chunk)) this.#release()
  }

  #pushReceived(): void {
    for (const chunk of this.#received.take()) this.push(chunk)
  }

  override _read(): void {
    this.#isReadWaiting = this.#received.bytes === 0
    this.#pushReceived()
    this.#release()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#stream.write(chunk)
    if (this.#stream.backlog <= highWaterBytes || this.#isClosed) done()
    else this.#writeDone = done
  }

  override _final(done: () => void): void {
    this.#stream.finish()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isClosed) this.#stream.close(error ?? undefined)
    done(error)
  }
}

/** A byte stream as a Node.js Duplex. */
export const duplexOf = (stream: ByteStream): Duplex => new ByteStreamDuplex(stream)
