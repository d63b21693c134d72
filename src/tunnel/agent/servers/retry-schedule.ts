import { Backoff, type BackoffOptions, type Clock } from '../../../core/index.ts'

/** The delays of one address; as Konnectivity's. */
export interface RetryScheduleOptions extends Pick<BackoffOptions, 'initialMs' | 'maxMs'> {
  readonly clock: Clock
  readonly random: () => number
}

const factor = 1.5
const jitter = 0.1

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
    const backoff = this.#backoffs.get(address) ?? new Backoff({ ...this.#options, factor, jitter })
    this.#backoffs.set(address, backoff)
    backoff.next()
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
