import type { ByteStream } from './byte-stream.ts'
import { ChannelBroken } from './errors.ts'
import { StallTimer } from './stall-detector.ts'

/** Limits of a join. */
export interface JoinLimits {
  /** Backlog of one stream above which the other is not read. */
  readonly highWaterBytes: number
  /** How long a reader may read nothing while there is more for it: a paused download is allowed for a while. */
  readonly blockedMs: number
  /** How long it may read nothing of the last bytes, after the other side has ended. */
  readonly lastBytesMs: number
}

/** The result of a join. */
export interface JoinEnd {
  readonly bytesFromA: number
  readonly bytesFromB: number
  /** Which stream closed first, or that both directions had ended in order. */
  readonly endedBy: 'a' | 'b' | 'both'
  readonly error?: Error
}

const defaultLimits: JoinLimits = {
  highWaterBytes: 128 * 1024,
  blockedMs: 3_600_000,
  lastBytesMs: 300_000,
}

class Direction {
  readonly #from: ByteStream
  readonly #to: ByteStream
  readonly #limits: JoinLimits
  /** A side that is not read is not seen to disconnect, so the other side must not block it forever. */
  readonly #stall: StallTimer
  /** Bytes passed on that were not reported to the source as consumed. */
  #unreported = 0
  bytes = 0
  finished = false

  constructor(from: ByteStream, to: ByteStream, limits: JoinLimits) {
    this.#from = from
    this.#to = to
    this.#limits = limits
    this.#stall = new StallTimer(
      () => to.backlog,
      () => to.close(new ChannelBroken('peer does not read')),
    )
  }

  copy(chunk: Buffer): void {
    this.bytes += chunk.length
    this.#to.write(chunk)
    this.#unreported += chunk.length
    if (this.#to.backlog <= this.#limits.highWaterBytes) this.release()
    else if (!this.#stall.isRunning) this.#stall.start(this.#limits.blockedMs)
  }

  release(): void {
    if (!this.finished) this.#stall.stop()
    if (this.#unreported === 0) return
    const bytes = this.#unreported
    this.#unreported = 0
    this.#from.consumed(bytes)
  }

  finish(): void {
    this.finished = true
    this.#to.finish()
    if (this.#to.backlog > 0) this.#stall.start(this.#limits.lastBytesMs)
  }

  stop(): void {
    this.#stall.stop()
  }
}

/** Copies bytes, ends of direction and back-pressure between two streams until both are closed. */
export function join(
  a: ByteStream,
  b: ByteStream,
  limits: JoinLimits = defaultLimits,
): Promise<JoinEnd> {
  const aToB = new Direction(a, b, limits)
  const bToA = new Direction(b, a, limits)
  return new Promise((resolve) => {
    let open = 2
    let first: { endedBy: JoinEnd['endedBy']; error?: Error } | undefined
    const closed = (which: 'a' | 'b', other: ByteStream, error?: Error): void => {
      open--
      aToB.stop()
      bToA.stop()
      if (first === undefined) {
        const inOrder = aToB.finished && bToA.finished && error === undefined
        first = { endedBy: inOrder ? 'both' : which, ...(error && { error }) }
        other.close(error)
      }
      if (open === 0) resolve({ bytesFromA: aToB.bytes, bytesFromB: bToA.bytes, ...first })
    }
    a.start({
      data: (chunk) => aToB.copy(chunk),
      finished: () => aToB.finish(),
      drained: () => bToA.release(),
      closed: (error) => closed('a', b, error),
    })
    b.start({
      data: (chunk) => bToA.copy(chunk),
      finished: () => bToA.finish(),
      drained: () => aToB.release(),
      closed: (error) => closed('b', a, error),
    })
  })
}
