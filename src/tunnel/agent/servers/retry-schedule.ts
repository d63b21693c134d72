import { Backoff, type BackoffOptions, type Clock } from '../../../core/index.ts'

/** The delays of one address; as Konnectivity's. */
export interface RetryScheduleOptions extends Pick<BackoffOptions, 'initialMs' | 'maxMs'> {
  readonly clock: Clock
  readonly random: () => number
}

const factor = 1.5
/** Delays are up to this many times as long as configured, and never shorter. */
const maxStretch = 1.1

/** When each of several addresses may be retried after a failure. */
export class RetrySchedule {
  readonly #options: RetryScheduleOptions
  readonly #backoffs = new Map<string, Backoff>()

  constructor(options: RetryScheduleOptions) {
    this.#options = options
  }

  isDue(address: string): boolean {
    return this.#backoffs.get(address)?.isDue ?? true
  }

  /** The time until the next address is due; `Infinity` if none is waiting. */
  get nextDueMs(): number {
    const now = this.#options.clock.monotonic()
    const delays = [...this.#backoffs.values()].map(({ retryAt }) => retryAt - now)
    return Math.min(...delays.filter((ms) => ms > 0))
  }

  failed(address: string): void {
    const backoff = this.#backoffs.get(address) ?? this.#create()
    this.#backoffs.set(address, backoff)
    backoff.next()
  }

  #create(): Backoff {
    const { initialMs, maxMs, clock, random } = this.#options
    return new Backoff({
      initialMs: initialMs * maxStretch,
      maxMs: maxMs * maxStretch,
      factor,
      jitter: 1 - 1 / maxStretch,
      clock,
      random: () => 1 - random(),
    })
  }

  succeeded(address: string): void {
    this.#backoffs.delete(address)
  }

  /** Forgets all other addresses. */
  keep(addresses: ReadonlySet<string>): void {
    for (const address of this.#backoffs.keys())
      if (!addresses.has(address)) this.#backoffs.delete(address)
  }
}
