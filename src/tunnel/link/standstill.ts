/** Notices that nothing of what waits in a queue is taken any more. */
export class Standstill {
  readonly #backlog: () => number
  readonly #noticed: () => void
  #timer: NodeJS.Timeout | undefined
  #before = 0

  constructor(backlog: () => number, noticed: () => void) {
    this.#backlog = backlog
    this.#noticed = noticed
  }

  get isWatching(): boolean {
    return this.#timer !== undefined
  }

  /** Begins to watch, or begins anew; less must wait each time the limit has passed. */
  watch(limitMs: number): void {
    clearTimeout(this.#timer)
    this.#before = this.#backlog()
    this.#timer = setTimeout(() => this.#look(limitMs), limitMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #look(limitMs: number): void {
    const waiting = this.#backlog()
    if (waiting === 0) this.stop()
    else if (waiting < this.#before) this.watch(limitMs)
    else {
      this.stop()
      this.#noticed()
    }
  }
}
