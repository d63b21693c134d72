/** Chunks below this are copied; the others are at least a sixteenth of the memory that they are cut from. */
export const minKeptBytes = 4 * 1024
const blockBytes = 16 * 1024

/**
 * Received chunks that wait for a reader. A peer chooses how small they are, and each one costs an object and keeps the
 * whole piece of memory that it was cut from: small ones are therefore copied together.
 */
export class HeldChunks {
  #chunks: Buffer[] = []
  #block: Buffer | undefined
  #used = 0
  bytes = 0

  /** Objects in memory, however many chunks were added. */
  get pieces(): number {
    return this.#chunks.length + (this.#block ? 1 : 0)
  }

  push(chunk: Buffer): void {
    this.bytes += chunk.length
    if (chunk.length >= minKeptBytes) {
      this.#seal()
      this.#chunks.push(chunk)
      return
    }
    if (this.#block && this.#block.length - this.#used < chunk.length) this.#seal()
    this.#block ??= Buffer.allocUnsafeSlow(blockBytes)
    this.#used += chunk.copy(this.#block, this.#used)
  }

  /** All chunks in order; there are none afterwards. */
  take(): Buffer[] {
    this.#seal()
    const chunks = this.#chunks
    this.#chunks = []
    this.bytes = 0
    return chunks
  }

  #seal(): void {
    if (!this.#block) return
    const filled = this.#block.subarray(0, this.#used)
    this.#chunks.push(this.#used < blockBytes / 2 ? Buffer.from(filled) : filled)
    this.#block = undefined
    this.#used = 0
  }
}
