import { pause } from './abort.ts'
import { type Clock, systemClock } from './clock.ts'

/** Delays between attempts. */
export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** By how much each delay is longer than the one before; 2 unless given. */
  readonly factor?: number
  /** The part of each delay that is left to chance, from 0 to 1; 0.5 unless given. */
  readonly jitter?: number
  /** After so long without a call of `next` the delays begin at `initialMs` again; never unless given. */
  readonly resetAfterMs?: number
  readonly clock?: Clock
  readonly random?: () => number
}

const defaultFactor = 2
const defaultJitter = 0.5

/** Exponential backoff from `initialMs` to `maxMs`. Jitter spreads clients that lost the same server. */
export class Backoff {
  readonly #options: BackoffOptions
  #delayMs: number
  #retryAt = Number.NEGATIVE_INFINITY
  #calledAt = Number.NEGATIVE_INFINITY

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#delayMs = options.initialMs
  }

  /** The next delay, at least `retryAfterMs`. */
  next(retryAfterMs = 0): number {
    const { maxMs, factor = defaultFactor, jitter = defaultJitter } = this.#options
    const { random = Math.random, resetAfterMs = Number.POSITIVE_INFINITY } = this.#options
    const now = this.#now()
    if (now - this.#calledAt > resetAfterMs) this.#delayMs = this.#options.initialMs
    this.#calledAt = now
    const delayMs = Math.max(Math.round(this.#delayMs * (1 - jitter * random())), retryAfterMs)
    this.#delayMs = Math.min(this.#delayMs * factor, maxMs)
    this.#retryAt = now + delayMs
    return delayMs
  }

  /** Resolves after the next delay, or as soon as `signal` aborts. */
  wait(signal: AbortSignal, retryAfterMs?: number): Promise<void> {
    return pause(this.next(retryAfterMs), signal)
  }

  /** The next delay is `initialMs` again. */
  reset(): void {
    this.#delayMs = this.#options.initialMs
    this.#retryAt = Number.NEGATIVE_INFINITY
  }

  /** Whether the last delay is over. */
  get isDue(): boolean {
    return this.#now() >= this.#retryAt
  }

  #now(): number {
    return (this.#options.clock ?? systemClock).monotonic()
  }

  /** Monotonic time at which the last delay ends. */
  get retryAt(): number {
    return this.#retryAt
  }
}
