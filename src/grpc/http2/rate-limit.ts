import type { Clock } from '../../core/index.ts'

/** Allows something so many times within a period. */
export class RateLimit {
  readonly #limit: number
  readonly #periodMs: number
  readonly #clock: Clock
  #count = 0
  #periodStart = 0

  constructor(limit: number, periodMs: number, clock: Clock) {
    this.#limit = limit
    this.#periodMs = periodMs
    this.#clock = clock
  }

  allows(amount = 1): boolean {
    const now = this.#clock.monotonic()
    if (now - this.#periodStart > this.#periodMs) {
      this.#periodStart = now
      this.#count = 0
    }
    this.#count += amount
    return this.#count <= this.#limit
  }

  reset(): void {
    this.#count = 0
  }
}
