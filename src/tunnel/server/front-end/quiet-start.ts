import type { Leg, LegEvents } from '../../link/index.ts'

/**
 * A leg that holds back what is written until its other side has spoken, or for `forMs` at most.
 * kube-apiserver gives up a connection when bytes of the target arrive together with the answer to
 * CONNECT; whoever speaks first has read that answer.
 */
export function quietStart(leg: Leg, forMs: number): Leg {
  return new QuietStart(leg, forMs)
}

class QuietStart implements Leg {
  readonly #leg: Leg
  readonly #forMs: number
  #held: Buffer[] | undefined = []
  #heldBytes = 0
  #finishes = false
  #timer: NodeJS.Timeout | undefined

  constructor(leg: Leg, forMs: number) {
    this.#leg = leg
    this.#forMs = forMs
  }

  get backlog(): number {
    return this.#heldBytes + this.#leg.backlog
  }

  start(events: LegEvents): void {
    this.#timer = setTimeout(() => this.#release(), this.#forMs)
    this.#leg.start({
      data: (chunk) => {
        if (this.#held) this.#release()
        events.data(chunk)
      },
      finished: () => events.finished(),
      drained: () => events.drained(),
      closed: (error) => {
        clearTimeout(this.#timer)
        events.closed(error)
      },
    })
  }

  write(chunk: Buffer): void {
    if (!this.#held) {
      this.#leg.write(chunk)
      return
    }
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
  }

  consumed(bytes: number): void {
    this.#leg.consumed(bytes)
  }

  finish(): void {
    if (this.#held) this.#finishes = true
    else this.#leg.finish()
  }

  close(error?: Error): void {
    if (!error) this.#release()
    clearTimeout(this.#timer)
    this.#leg.close(error)
  }

  #release(): void {
    clearTimeout(this.#timer)
    const held = this.#held
    if (!held) return
    this.#held = undefined
    this.#heldBytes = 0
    for (const chunk of held) this.#leg.write(chunk)
    if (this.#finishes) this.#leg.finish()
  }
}
