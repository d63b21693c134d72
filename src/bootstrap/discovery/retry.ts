import { Backoff, type Clock } from '../../core/index.ts'
import { DiscoveryFailed, ReasonedFailure } from './errors.ts'
import { maxRetryPauseMs, minRetryPauseMs } from './limits.ts'

/** How long to retry, and what is called meanwhile. */
export interface RetryOptions {
  /** From the first attempt on; 0 for a single attempt. */
  readonly timeoutMs: number
  /** For how long a failure that passes soon or never (`passesSoon`) is retried; `timeoutMs` by default. */
  readonly soonMs?: number
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  readonly onWait: (failure: ReasonedFailure<string>, waitMs: number) => void
}

/** Retries `attempt` with backoff until it succeeds, fails with a permanent error, or `options.timeoutMs` is over. */
export async function retry<T>(
  attempt: (remainingMs: number) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const { timeoutMs, clock, signal } = options
  const startedAt = clock.monotonic()
  const shortFailures = new ShortFailures(options)
  const backoff = new Backoff({ initialMs: minRetryPauseMs, maxMs: maxRetryPauseMs, clock })
  for (;;) {
    const remainingMs = Math.max(timeoutMs - (clock.monotonic() - startedAt), 0)
    try {
      return await attempt(timeoutMs === 0 ? Number.POSITIVE_INFINITY : remainingMs)
    } catch (error) {
      if (!(error instanceof ReasonedFailure) || !error.mayPass || timeoutMs === 0) throw error
      const waitMs = backoff.next(error.retryAfterMs)
      shortFailures.require(error, waitMs)
      if (clock.monotonic() - startedAt + waitMs >= timeoutMs)
        throw expired(error, waitMs, timeoutMs)
      options.onWait(error, waitMs)
      await options.pause(waitMs, signal)
      if (signal.aborted) throw aborted(error)
    }
  }
}

/** Limits how long failures with `passesSoon` are retried. */
class ShortFailures {
  readonly #clock: Clock
  readonly #maxMs: number
  #last: { readonly failure: ReasonedFailure<string>; readonly since: number } | undefined

  constructor({ clock, timeoutMs, soonMs = timeoutMs }: RetryOptions) {
    this.#clock = clock
    this.#maxMs = Math.min(soonMs, timeoutMs)
  }

  /** Throws the failure if the next attempt would be too late for it. */
  require(failure: ReasonedFailure<string>, waitMs: number): void {
    const now = this.#clock.monotonic()
    if (failure.passesSoon) this.#last ??= { failure, since: now }
    // Retry-After is no news about the failure; after another failure the server may have changed.
    else if (failure.retryAfterMs === 0) this.#last = undefined
    if (this.#last && now - this.#last.since + waitMs >= this.#maxMs) throw this.#last.failure
  }
}

function expired(
  last: ReasonedFailure<string>,
  waitMs: number,
  timeoutMs: number,
): DiscoveryFailed {
  const inSeconds = (ms: number): string => `${Math.round(ms / 1000)} s`
  const what =
    waitMs > maxRetryPauseMs
      ? `gave up, since the server wants ${inSeconds(waitMs)} of rest and all is to be done in ${inSeconds(timeoutMs)}`
      : `gave up after ${inSeconds(timeoutMs)}`
  return new DiscoveryFailed(
    'deadline-exceeded',
    `${what}; the last that went wrong: ${last.message}`,
    { hint: last.hint ?? '', cause: last },
  )
}

const aborted = (last: ReasonedFailure<string>): DiscoveryFailed =>
  new DiscoveryFailed('aborted', `ended while waiting: ${last.message}`, {
    hint: last.hint ?? '',
    cause: last,
  })
