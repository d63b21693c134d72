import { type Clock, pause, withinTime } from '../core/index.ts'

/** How stale the list may become. */
export interface StalenessOptions {
  /** A list that was not confirmed for longer rejects all requests. */
  readonly maxAgeMs: number
  /** How often it is confirmed; well below `maxAgeMs`. */
  readonly confirmEveryMs: number
}

/** What the design promises: a revocation takes effect within two seconds everywhere, or all requests are rejected. */
export const defaultStaleness: StalenessOptions = { maxAgeMs: 2_000, confirmEveryMs: 500 }

/** How a list is confirmed, and who is notified. */
export interface StalenessEvents {
  /** Rejects if the list cannot be confirmed. */
  confirm(signal: AbortSignal): Promise<void>
  stale(error: unknown): void
  fresh(): void
}

/**
 * Knows whether a remote list is stale. A watch alone does not show it: without a network it is as silent as without
 * changes. So the list is confirmed again and again.
 */
export class ListStaleness {
  readonly #options: StalenessOptions
  readonly #clock: Clock
  readonly #events: StalenessEvents
  #confirmedAt = Number.NEGATIVE_INFINITY
  #isReported = false

  constructor(options: StalenessOptions, clock: Clock, events: StalenessEvents) {
    this.#options = options
    this.#clock = clock
    this.#events = events
  }

  get isStale(): boolean {
    return this.#clock.monotonic() - this.#confirmedAt > this.#options.maxAgeMs
  }

  /** The list was confirmed by a response; it is as old as the request, so pass the time of that. */
  confirmed(at: number = this.#clock.monotonic()): void {
    this.#confirmedAt = Math.max(at, this.#confirmedAt)
    if (this.#isReported && !this.isStale) {
      this.#isReported = false
      this.#events.fresh()
    }
  }

  /** Confirms the list until `signal` aborts. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#options.confirmEveryMs, signal)
      if (!signal.aborted) await this.#confirmOnce(signal)
    }
  }

  async #confirmOnce(signal: AbortSignal): Promise<void> {
    const requestedAt = this.#clock.monotonic()
    try {
      await withinTime(this.#remainingMs(requestedAt), signal, (within) =>
        this.#events.confirm(within),
      )
      this.confirmed(requestedAt)
    } catch (error) {
      if (!signal.aborted) this.#report(error)
    }
  }

  /** A later response could not keep the list from becoming stale. */
  #remainingMs(now: number): number {
    const { maxAgeMs } = this.#options
    const remaining = this.#confirmedAt + maxAgeMs - now
    return remaining > 0 ? remaining + 1 : maxAgeMs
  }

  #report(error: unknown): void {
    if (this.#isReported || !this.isStale) return
    this.#isReported = true
    this.#events.stale(error)
  }
}
