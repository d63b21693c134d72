import type { Clock } from '../../core/index.ts'
import { DiscoveryFailed, ReasonedFailure } from './errors.ts'

/** How long to go on, and what is told meanwhile. */
export interface Patience {
  /** From the first attempt on; 0 is one attempt. */
  readonly timeoutMs: number
  /** For how long in a row a failure that passes soon or never is borne; as long as any other unless given. */
  readonly soonMs?: number
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  readonly onWait: (failure: ReasonedFailure<string>, waitMs: number) => void
}

const firstPauseMs = 1_000
const longestPauseMs = 5_000

/** Repeats an attempt while its failure may pass; `leftMs` is what remains for it. Others end it at once. */
export async function untilItWorks<T>(
  attempt: (leftMs: number) => Promise<T>,
  patience: Patience,
): Promise<T> {
  const { timeoutMs, clock, signal } = patience
  const began = clock.monotonic()
  const hopes = new Hopes(patience)
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const leftMs = Math.max(timeoutMs - (clock.monotonic() - began), 0)
    try {
      return await attempt(timeoutMs === 0 ? Number.POSITIVE_INFINITY : leftMs)
    } catch (error) {
      if (!(error instanceof ReasonedFailure) || !error.mayPass || timeoutMs === 0) throw error
      // Up to half is left to chance, so that machines which start together do not ask together.
      const waitMs = Math.max(pauseMs * (1 - Math.random() / 2), error.retryAfterMs)
      hopes.require(error, waitMs)
      if (clock.monotonic() - began + waitMs >= timeoutMs) throw expired(error, waitMs, timeoutMs)
      patience.onWait(error, waitMs)
      await patience.pause(waitMs, signal)
      if (signal.aborted) throw ended(error)
    }
  }
}

/** Gives up on a failure that passes soon or never, once it has not passed soon. */
class Hopes {
  readonly #clock: Clock
  readonly #longestMs: number
  #last: { readonly failure: ReasonedFailure<string>; readonly since: number } | undefined

  constructor({ clock, timeoutMs, soonMs = timeoutMs }: Patience) {
    this.#clock = clock
    this.#longestMs = Math.min(soonMs, timeoutMs)
  }

  /** Throws the failure itself when the next attempt would come too late for it. */
  require(failure: ReasonedFailure<string>, waitMs: number): void {
    const now = this.#clock.monotonic()
    if (failure.passesSoon) this.#last ??= { failure, since: now }
    // A server that asks for rest says nothing new; one that was away may have learnt something.
    else if (failure.retryAfterMs === 0) this.#last = undefined
    if (this.#last && now - this.#last.since + waitMs >= this.#longestMs) throw this.#last.failure
  }
}

function expired(
  last: ReasonedFailure<string>,
  waitMs: number,
  timeoutMs: number,
): DiscoveryFailed {
  const inSeconds = (ms: number): string => `${Math.round(ms / 1000)} s`
  const what =
    waitMs > longestPauseMs
      ? `gave up, since the server wants ${inSeconds(waitMs)} of rest and all is to be done in ${inSeconds(timeoutMs)}`
      : `gave up after ${inSeconds(timeoutMs)}`
  return new DiscoveryFailed(
    'deadline-exceeded',
    `${what}; the last that went wrong: ${last.message}`,
    { hint: last.hint ?? '', cause: last },
  )
}

const ended = (last: ReasonedFailure<string>): DiscoveryFailed =>
  new DiscoveryFailed('aborted', `ended while waiting: ${last.message}`, {
    hint: last.hint ?? '',
    cause: last,
  })
