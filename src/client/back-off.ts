import { pause } from '../core/index.ts'

/** Pauses that double from `firstMs` to `longestMs` until `reset`, each shortened by chance. */
export class BackOff {
  readonly #firstMs: number
  readonly #longestMs: number
  #nextMs: number

  constructor(limits: { readonly firstMs: number; readonly longestMs: number }) {
    this.#firstMs = limits.firstMs
    this.#longestMs = limits.longestMs
    this.#nextMs = limits.firstMs
  }

  reset(): void {
    this.#nextMs = this.#firstMs
  }

  /** Resolves after the next pause, at least `atLeastMs`, or as soon as `signal` aborts. */
  async pause(signal: AbortSignal, atLeastMs = 0): Promise<void> {
    // Up to half of it is left to chance, so that clients that lost the same server come back spread.
    const ms = this.#nextMs * (1 - Math.random() / 2)
    this.#nextMs = Math.min(this.#nextMs * 2, this.#longestMs)
    await pause(Math.max(ms, atLeastMs), signal)
  }
}
