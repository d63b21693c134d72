import { type Clock, pause } from '../core/index.ts'

/** How long the list may be out of sight. */
export interface SightOptions {
  /** From then on everybody is refused. */
  readonly lostAfterMs: number
  /** How often to look; well below `lostAfterMs`. */
  readonly lookEveryMs: number
}

/** The times that the design promises: revoked within two seconds everywhere, or nobody gets in. */
export const defaultSight: SightOptions = { lostAfterMs: 2_000, lookEveryMs: 500 }

/** What to look at, and whom to tell. */
export interface Sighting {
  /** Reads the list; rejects when it cannot. */
  look(signal: AbortSignal): Promise<void>
  lost(error: unknown): void
  found(): void
}

/**
 * Knows whether a remote list is in sight. A watch alone cannot tell: one whose network is gone is
 * as silent as one without news. So the list is read again and again.
 */
export class ListSight {
  readonly #options: SightOptions
  readonly #clock: Clock
  readonly #sighting: Sighting
  #lastSeen = Number.NEGATIVE_INFINITY
  #toldLost = false

  constructor(options: SightOptions, clock: Clock, sighting: Sighting) {
    this.#options = options
    this.#clock = clock
    this.#sighting = sighting
  }

  isLost(): boolean {
    return this.#clock.monotonic() - this.#lastSeen > this.#options.lostAfterMs
  }

  /** The list was read; the answer is as old as the question, so pass the time of that. */
  seen(at: number = this.#clock.monotonic()): void {
    this.#lastSeen = Math.max(at, this.#lastSeen)
    if (this.#toldLost && !this.isLost()) {
      this.#toldLost = false
      this.#sighting.found()
    }
  }

  /** Looks until `signal` aborts. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#options.lookEveryMs, signal)
      if (!signal.aborted) await this.#lookOnce(signal)
    }
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    const asked = this.#clock.monotonic()
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(new Error('no answer in time')), this.#leftMs(asked))
    const stop = () => limit.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    try {
      await Promise.race([this.#sighting.look(limit.signal), rejectOnAbort(limit.signal)])
      this.seen(asked)
    } catch (error) {
      if (!signal.aborted) this.#tellLost(error)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  /** An answer that comes later could no longer prevent that the list counts as lost. */
  #leftMs(now: number): number {
    const { lostAfterMs } = this.#options
    const left = this.#lastSeen + lostAfterMs - now
    return left > 0 ? left + 1 : lostAfterMs
  }

  #tellLost(error: unknown): void {
    if (this.#toldLost || !this.isLost()) return
    this.#toldLost = true
    this.#sighting.lost(error)
  }
}

/** For a look that does not heed its signal. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted', { cause: signal.reason })), {
      once: true,
    })
  })
}
