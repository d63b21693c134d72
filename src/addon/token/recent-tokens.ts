import type { Clock } from '../../core/index.ts'

interface Kept<Value> {
  readonly token: string
  readonly value: Value
  /** Milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

const longestMs = 2_000
const maxKept = 256
/** The end of a signature, which nobody can guess: whoever has it has the token. */
const tailLength = 24

/**
 * The tokens of the last two seconds, found without a hash: a page loads with dozens of requests that bring the same
 * one. Only a few are kept, and none for long, because they are kept as they are.
 */
export class RecentTokens<Value> {
  readonly #clock: Clock
  #kept = new Map<string, Kept<Value>>()
  #generation = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Changes whenever everything is forgotten. */
  get generation(): number {
    return this.#generation
  }

  get(token: string): Value | undefined {
    const kept = this.#kept.get(token.slice(-tailLength))
    if (!kept || kept.token !== token) return undefined
    const now = this.#clock.now()
    // A clock that was put back would make it last.
    return now >= kept.from && now < kept.until ? kept.value : undefined
  }

  /** Keeps a token that was found good, unless everything was forgotten since its check began. */
  keep(
    token: string,
    value: Value,
    times: { readonly since: number; readonly until: number },
  ): void {
    if (times.since !== this.#generation) return
    const from = this.#clock.now()
    if (this.#kept.size >= maxKept) this.#kept = new Map()
    const until = Math.min(times.until, from + longestMs)
    this.#kept.set(token.slice(-tailLength), { token, value, from, until })
  }

  clear(): void {
    this.#generation += 1
    this.#kept = new Map()
  }
}
