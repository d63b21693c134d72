import type { Clock, Logger } from '../core/index.ts'

const everyMs = 10_000
const mostNames = 1_000

/** Says what strangers can cause at most every ten seconds for each of them, and how often it was not said. */
export class SparseLog {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #told = new Map<string, { readonly at: number; leftOut: number }>()

  constructor(log: Logger, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** `name` stands for whoever causes it. */
  warn(name: string, fields: object, message: string): void {
    const now = this.#clock.monotonic()
    const before = this.#told.get(name)
    if (before && now - before.at < everyMs) {
      before.leftOut++
      return
    }
    const leftOut = before?.leftOut ?? 0
    this.#told.delete(name)
    const [oldest] = this.#told.keys()
    if (oldest !== undefined && this.#told.size >= mostNames) this.#told.delete(oldest)
    this.#told.set(name, { at: now, leftOut: 0 })
    this.#log.warn({ ...fields, ...(leftOut > 0 && { leftOut }) }, message)
  }
}
