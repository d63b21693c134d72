import { Backoff, type BackoffOptions } from '../../core/index.ts'

/**
 * Keys that wait for work. A key is in the queue at most once and never worked on twice at the same
 * time: added while it is worked on, it comes again afterwards.
 */
export class WorkQueue {
  readonly #ready: string[] = []
  readonly #waiting = new Set<string>()
  readonly #working = new Set<string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #backoffs = new Map<string, Backoff>()
  readonly #takers: ((key: string | undefined) => void)[] = []
  readonly #backoff: BackoffOptions
  #closed = false

  constructor(backoff: BackoffOptions) {
    this.#backoff = { jitter: 0, ...backoff }
  }

  /** Asks for work on a key, at once even if it waits for a retry. */
  add(key: string): void {
    if (this.#closed) return
    clearTimeout(this.#timers.get(key))
    this.#timers.delete(key)
    if (this.#waiting.has(key)) return
    this.#waiting.add(key)
    if (!this.#working.has(key)) this.#offer(key)
  }

  /** Asks for work on a key in a while, unless something asks for it earlier. */
  addAfter(key: string, ms: number): void {
    if (this.#closed || this.#waiting.has(key)) return
    clearTimeout(this.#timers.get(key))
    this.#timers.set(
      key,
      setTimeout(() => this.add(key), ms),
    )
  }

  /** Asks for work on a key after a delay that grows until `succeeded`. */
  retry(key: string): void {
    const backoff = this.#backoffs.get(key) ?? new Backoff(this.#backoff)
    this.#backoffs.set(key, backoff)
    this.addAfter(key, backoff.next())
  }

  /** The next retry of this key begins with the shortest delay again. */
  succeeded(key: string): void {
    this.#backoffs.delete(key)
  }

  /** The next key to work on; waits for one. `undefined` once the queue is closed. */
  take(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    const key = this.#ready.shift()
    if (key === undefined) return new Promise((resolve) => this.#takers.push(resolve))
    this.#start(key)
    return Promise.resolve(key)
  }

  /** Says that the work on a key that was taken is over. */
  done(key: string): void {
    this.#working.delete(key)
    if (this.#waiting.has(key)) this.#offer(key)
  }

  /** Forgets everything and sends all takers away. */
  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    for (const resolve of this.#takers.splice(0)) resolve(undefined)
  }

  #offer(key: string): void {
    const taker = this.#closed ? undefined : this.#takers.shift()
    if (taker === undefined) {
      this.#ready.push(key)
      return
    }
    this.#start(key)
    taker(key)
  }

  #start(key: string): void {
    this.#waiting.delete(key)
    this.#working.add(key)
  }
}
