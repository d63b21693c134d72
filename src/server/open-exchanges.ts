import type { Exchange } from './exchange.ts'

/** All exchanges that are under way, so that they can be ended. */
export class OpenExchanges {
  readonly #open = new Set<Exchange>()
  readonly #waiting: (() => void)[] = []

  add(exchange: Exchange): void {
    this.#open.add(exchange)
  }

  delete(exchange: Exchange): void {
    this.#open.delete(exchange)
    if (this.#open.size > 0 || this.#waiting.length === 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** How many of the exchanges under way are long-running. */
  longRunning(): number {
    let count = 0
    for (const exchange of this.#open) if (exchange.longRunning) count++
    return count
  }

  /** Asks long-running exchanges to come to an end. */
  endStreams(why: Error): void {
    for (const exchange of this.#open) if (exchange.longRunning) exchange.abort(why)
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
