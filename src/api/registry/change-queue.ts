import type { ObjectChange } from './watch-objects.ts'

/** How many changes a reader may fall behind before its watch is ended. */
const maxBehind = 100_000

/** Turns pushed changes into an async sequence; ends when closed or when the reader falls too far behind. */
export class ChangeQueue implements AsyncIterable<ObjectChange> {
  #changes: ObjectChange[] = []
  #wake: (() => void) | undefined
  #closed = false
  #failure: Error | undefined

  push(change: ObjectChange): void {
    if (this.#closed) return
    this.#changes.push(change)
    if (this.#changes.length > maxBehind) this.#closed = true
    this.#wake?.()
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  /** Ends the sequence with an error, after what was pushed before. */
  fail(error: Error): void {
    if (!this.#closed) this.#failure = error
    this.close()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ObjectChange> {
    for (;;) {
      const ready = this.#changes
      this.#changes = []
      yield* ready
      if (this.#changes.length > 0) continue
      if (this.#failure) throw this.#failure
      if (this.#closed) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
  }
}
