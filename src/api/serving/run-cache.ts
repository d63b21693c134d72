import type { StoredRecord } from '../../storage/index.ts'

type Run = readonly StoredRecord[]

/** Keeps what was rendered from runs of records, least recently used out first, within a budget of bytes. */
export class RunCache {
  readonly #budget: number
  readonly #render: (run: Run) => Buffer
  readonly #rendered = new Map<Run, Buffer>()
  #bytes = 0

  constructor(budgetBytes: number, render: (run: Run) => Buffer) {
    this.#budget = budgetBytes
    this.#render = render
  }

  get(run: Run): Buffer {
    const known = this.#rendered.get(run)
    if (known) {
      this.#rendered.delete(run)
      this.#rendered.set(run, known)
      return known
    }
    const bytes = this.#render(run)
    // One huge run must not push out everything else.
    if (bytes.length <= this.#budget / 4) this.#keep(run, bytes)
    return bytes
  }

  #keep(run: Run, bytes: Buffer): void {
    this.#rendered.set(run, bytes)
    this.#bytes += bytes.length
    for (const [oldest, rendered] of this.#rendered) {
      if (this.#bytes <= this.#budget) return
      this.#rendered.delete(oldest)
      this.#bytes -= rendered.length
    }
  }
}
