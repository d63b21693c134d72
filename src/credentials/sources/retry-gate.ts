/** The pauses between attempts that fail. */
export interface RetryLimits {
  readonly firstMs: number
  readonly longestMs: number
}

/** Says when something that keeps failing may be tried again: after pauses that double, each time. */
export class RetryGate {
  readonly #limits: RetryLimits
  #pauseMs = 0
  #since = Number.NEGATIVE_INFINITY

  constructor(limits: RetryLimits) {
    this.#limits = limits
  }

  /** Whether an attempt may be made at this time. */
  isOpen(nowMs: number): boolean {
    return nowMs >= this.#since + this.#pauseMs
  }

  /** An attempt was in vain: the next pause begins. After a long quiet time pauses are short again. */
  close(nowMs: number): void {
    const { firstMs, longestMs } = this.#limits
    const quiet = nowMs - this.#since > 2 * longestMs
    this.#pauseMs = quiet || this.#pauseMs === 0 ? firstMs : Math.min(this.#pauseMs * 2, longestMs)
    this.#since = nowMs
  }

  /** All is well again. */
  reset(): void {
    this.#pauseMs = 0
    this.#since = Number.NEGATIVE_INFINITY
  }
}
