import type { Clock } from '../../core/index.ts'
import { Http2Error } from './frames.ts'
import { ratePeriodMs } from './limits.ts'

/** Limits how often a peer may do something within `ratePeriodMs`. */
export class RateLimit {
  readonly #limit: number
  readonly #problem: string
  readonly #clock: Clock
  #count = 0
  #periodStart = 0

  constructor(limit: number, problem: string, clock: Clock) {
    this.#limit = limit
    this.#problem = problem
    this.#clock = clock
  }

  /** @throws Http2Error above the limit */
  count(amount = 1): void {
    const now = this.#clock.monotonic()
    if (now - this.#periodStart > ratePeriodMs) {
      this.#periodStart = now
      this.#count = 0
    }
    this.#count += amount
    if (this.#count > this.#limit) throw new Http2Error('ENHANCE_YOUR_CALM', this.#problem)
  }

  reset(): void {
    this.#count = 0
  }
}
