import type { Leg } from './byte-stream.ts'
import { ChannelBroken } from './errors.ts'
import { Standstill } from './stall-detector.ts'

/** How much may wait on either side of a join. */
export interface JoinLimits {
  /** Bytes waiting to leave one leg above which the other is no longer read. */
  readonly highWaterBytes: number
  /** How long a reader may take nothing while somebody has more for it: a paused download is in order, for a while. */
  readonly heldUpMs: number
  /** How long it may take nothing of the last bytes, when the other side has said all. */
  readonly lastBytesMs: number
}

/** What went through a join, and how it ended. */
export interface JoinEnd {
  readonly bytesFromA: number
  readonly bytesFromB: number
  /** Which leg went first, or that both directions had ended in order. */
  readonly endedBy: 'a' | 'b' | 'both'
  readonly error?: Error
}

const defaultLimits: JoinLimits = {
  highWaterBytes: 128 * 1024,
  heldUpMs: 3_600_000,
  lastBytesMs: 300_000,
}

class Half {
  readonly #from: Leg
  readonly #to: Leg
  readonly #limits: JoinLimits
  /** A side that is not read cannot be seen to have gone, so whoever holds it up must not do so for ever. */
  readonly #standstill: Standstill
  /** Bytes passed on that the source does not know to be read yet. */
  #owed = 0
  bytes = 0
  finished = false

  constructor(from: Leg, to: Leg, limits: JoinLimits) {
    this.#from = from
    this.#to = to
    this.#limits = limits
    this.#standstill = new Standstill(
      () => to.backlog,
      () => to.close(new ChannelBroken('nobody takes what was sent')),
    )
  }

  pass(chunk: Buffer): void {
    this.bytes += chunk.length
    this.#to.write(chunk)
    this.#owed += chunk.length
    if (this.#to.backlog <= this.#limits.highWaterBytes) this.release()
    else if (!this.#standstill.isWatching) this.#standstill.watch(this.#limits.heldUpMs)
  }

  release(): void {
    if (!this.finished) this.#standstill.stop()
    if (this.#owed === 0) return
    const bytes = this.#owed
    this.#owed = 0
    this.#from.consumed(bytes)
  }

  finish(): void {
    this.finished = true
    this.#to.finish()
    if (this.#to.backlog > 0) this.#standstill.watch(this.#limits.lastBytesMs)
  }

  stop(): void {
    this.#standstill.stop()
  }
}

/** Joins two legs until both are gone: bytes, ends of direction and back-pressure are carried over. */
export function join(a: Leg, b: Leg, limits: JoinLimits = defaultLimits): Promise<JoinEnd> {
  const forth = new Half(a, b, limits)
  const back = new Half(b, a, limits)
  return new Promise((resolve) => {
    let open = 2
    let first: { endedBy: JoinEnd['endedBy']; error?: Error } | undefined
    const closed = (which: 'a' | 'b', other: Leg, error?: Error): void => {
      open--
      forth.stop()
      back.stop()
      if (first === undefined) {
        const inOrder = forth.finished && back.finished && error === undefined
        first = { endedBy: inOrder ? 'both' : which, ...(error && { error }) }
        other.close(error)
      }
      if (open === 0) resolve({ bytesFromA: forth.bytes, bytesFromB: back.bytes, ...first })
    }
    a.start({
      data: (chunk) => forth.pass(chunk),
      finished: () => forth.finish(),
      drained: () => back.release(),
      closed: (error) => closed('a', b, error),
    })
    b.start({
      data: (chunk) => back.pass(chunk),
      finished: () => back.finish(),
      drained: () => forth.release(),
      closed: (error) => closed('b', a, error),
    })
  })
}
