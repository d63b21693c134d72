import type { Clock } from '../../core/index.ts'

const second = 1_000

/** Lets so many events pass per second, and some more at once after a pause. */
export class RateGate {
  readonly #clock: Clock
  /** When the next event would be due if they came evenly. */
  #due = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts an event and returns 0, or returns after how many milliseconds there is room for it. */
  take(perSecond: number, burst: number): number {
    const now = this.#clock.monotonic()
    const apart = second / perSecond
    const due = Math.max(this.#due, now)
    const waitMs = due - now - (burst - 1) * apart
    if (waitMs > 0) return waitMs
    this.#due = due + apart
    return 0
  }

  /** Whether nothing is left of what was counted. */
  get isIdle(): boolean {
    return this.#due <= this.#clock.monotonic()
  }
}

/** Lets bytes pass at a rate that all connections of somebody share; a second's worth may come at once. */
export class BytePace {
  readonly #clock: Clock
  /** By when all that has passed is paid for. */
  #paid = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts bytes that pass, and returns for how many milliseconds the next ones must wait. */
  pass(bytes: number, perSecond: number): number {
    const now = this.#clock.monotonic()
    this.#paid = Math.max(this.#paid, now - second) + (bytes * second) / perSecond
    return Math.max(0, this.#paid - now)
  }

  get isIdle(): boolean {
    return this.#paid <= this.#clock.monotonic()
  }
}
