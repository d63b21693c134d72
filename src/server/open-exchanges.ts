import type { Exchange } from './exchange.ts'

/** All exchanges that are under way, so that they can be ended. */
export class OpenExchanges {
  // Not a Set: the tables that it outgrows keep their former members, and one another, alive until
  // a full collection, and requests come and go by the thousand.
  readonly #open: Exchange[] = []
  readonly #waiting: (() => void)[] = []

  add(exchange: Exchange): void {
    exchange.place = this.#open.push(exchange) - 1
  }

  delete(exchange: Exchange): void {
    if (this.#open[exchange.place] !== exchange) return
    const last = this.#open.pop()
    if (last !== undefined && last !== exchange) {
      this.#open[exchange.place] = last
      last.place = exchange.place
    }
    if (this.#open.length > 0 || this.#waiting.length === 0) return
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
    // A copy, because whoever ends leaves.
    for (const exchange of this.#open.filter((each) => each.longRunning)) exchange.abort(why)
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
