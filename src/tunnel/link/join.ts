import type { Leg } from './leg.ts'

/** How much may wait on either side of a join. */
export interface JoinLimits {
  /** Bytes waiting to leave one leg above which the other is no longer read. */
  readonly highWaterBytes: number
}

/** What went through a join, and how it ended. */
export interface JoinEnd {
  readonly bytesFromA: number
  readonly bytesFromB: number
  /** Which leg went first, or that both directions had ended in order. */
  readonly endedBy: 'a' | 'b' | 'both'
  readonly error?: Error
}

const defaultLimits: JoinLimits = { highWaterBytes: 128 * 1024 }

class Half {
  readonly #from: Leg
  readonly #to: Leg
  readonly #highWaterBytes: number
  /** Bytes passed on that the source does not know to be read yet. */
  #owed = 0
  bytes = 0
  finished = false

  constructor(from: Leg, to: Leg, highWaterBytes: number) {
    this.#from = from
    this.#to = to
    this.#highWaterBytes = highWaterBytes
  }

  pass(chunk: Buffer): void {
    this.bytes += chunk.length
    this.#to.write(chunk)
    this.#owed += chunk.length
    if (this.#to.backlog <= this.#highWaterBytes) this.release()
  }

  release(): void {
    if (this.#owed === 0) return
    const bytes = this.#owed
    this.#owed = 0
    this.#from.consumed(bytes)
  }

  finish(): void {
    this.finished = true
    this.#to.finish()
  }
}

/** Joins two legs until both are gone: bytes, ends of direction and back-pressure are carried over. */
export function join(a: Leg, b: Leg, limits: JoinLimits = defaultLimits): Promise<JoinEnd> {
  const forth = new Half(a, b, limits.highWaterBytes)
  const back = new Half(b, a, limits.highWaterBytes)
  return new Promise((resolve) => {
    let open = 2
    let first: { endedBy: JoinEnd['endedBy']; error?: Error } | undefined
    const closed = (which: 'a' | 'b', other: Leg, error?: Error): void => {
      open--
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
