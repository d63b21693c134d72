/** Counts what is under way, and tells when there is nothing. */
export class Activity {
  #count = 0
  readonly #waiting = new Set<() => void>()

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count++
  }

  end(): void {
    this.#count--
    if (this.#count > 0) return
    for (const tell of this.#waiting) tell()
    this.#waiting.clear()
  }

  /** Resolves as soon as nothing is under way, or when `signal` aborts. */
  idle(signal: AbortSignal): Promise<void> {
    if (this.#count === 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const tell = (): void => {
        this.#waiting.delete(tell)
        signal.removeEventListener('abort', tell)
        resolve()
      }
      this.#waiting.add(tell)
      signal.addEventListener('abort', tell, { once: true })
    })
  }
}
