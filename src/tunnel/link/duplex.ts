import { Duplex } from 'node:stream'
import { HeldChunks } from '../../core/index.ts'
import type { Leg } from './byte-stream.ts'

const highWaterBytes = 1024 * 1024

class LegDuplex extends Duplex {
  readonly #leg: Leg
  #owed = 0
  /** What arrives between two reads of the stream. */
  readonly #gathered = new HeldChunks()
  #isReadWaiting = false
  #written: (() => void) | undefined
  #isGone = false

  constructor(leg: Leg) {
    super({ allowHalfOpen: true, highWaterMark: 64 * 1024 })
    this.#leg = leg
    leg.start({
      data: (chunk) => {
        this.#owed += chunk.length
        this.#received(chunk)
      },
      finished: () => {
        this.#pushGathered()
        this.push(null)
      },
      drained: () => this.#wrote(),
      closed: (error) => {
        this.#isGone = true
        this.#wrote()
        if (error) this.destroy(error)
        else this.#ended()
      },
    })
  }

  /** An orderly end lets what has been received be read first. */
  #ended(): void {
    if (this.readableEnded || this.destroyed) {
      this.destroy()
      return
    }
    this.#pushGathered()
    if (this.readableFlowing !== false || this.readableLength > 0)
      this.once('end', () => this.destroy())
    this.push(null)
  }

  #release(): void {
    const bytes = this.#owed
    this.#owed = 0
    if (bytes > 0) this.#leg.consumed(bytes)
  }

  #wrote(): void {
    const written = this.#written
    this.#written = undefined
    written?.()
  }

  #received(chunk: Buffer): void {
    if (!this.#isReadWaiting) {
      this.#gathered.push(chunk)
      return
    }
    this.#isReadWaiting = false
    if (this.push(chunk)) this.#release()
  }

  #pushGathered(): void {
    for (const chunk of this.#gathered.take()) this.push(chunk)
  }

  override _read(): void {
    this.#isReadWaiting = this.#gathered.bytes === 0
    this.#pushGathered()
    this.#release()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#leg.write(chunk)
    if (this.#leg.backlog <= highWaterBytes || this.#isGone) done()
    else this.#written = done
  }

  override _final(done: () => void): void {
    this.#leg.finish()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isGone) this.#leg.close(error ?? undefined)
    done(error)
  }
}

/** A leg as a Node.js stream, for whoever wants to read and write it as a socket. */
export const duplexOf = (leg: Leg): Duplex => new LegDuplex(leg)
