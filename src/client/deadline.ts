import { setMaxListeners } from 'node:events'

/**
 * An abort signal that follows another one and a timer, and lets go of both when released.
 * AbortSignal.any would hold on to long-lived signals for as long as they live.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #follow = () => this.#controller.abort(this.#outer.reason)
  #timer: NodeJS.Timeout | undefined

  constructor(outer: AbortSignal) {
    this.#outer = outer
    setMaxListeners(0, outer) // one signal may well end hundreds of requests
    if (outer.aborted) this.#follow()
    else outer.addEventListener('abort', this.#follow, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Aborts after `ms` with the error that is made then, in place of any earlier limit. */
  limit(ms: number, error: () => Error): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#controller.abort(error()), ms)
  }

  release(): void {
    clearTimeout(this.#timer)
    this.#outer.removeEventListener('abort', this.#follow)
  }
}
