/** Chunks that may stay in memory although they have left, because moving the others costs time. */
const fewChunks = 16

/** Chunks that wait to be sent, cut at will and never copied. */
export class SendQueue {
  #chunks: Buffer[] = []
  #first = 0
  bytes = 0

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.bytes += chunk.length
  }

  /** Moves exactly `bytes`, which must be there, to `add`. */
  take(bytes: number, add: (part: Buffer) => void): void {
    this.bytes -= bytes
    let wanted = bytes
    while (wanted > 0) {
      const chunk = this.#chunks[this.#first]
      if (chunk === undefined) throw new RangeError('more taken than was queued')
      if (chunk.length > wanted) {
        add(chunk.subarray(0, wanted))
        this.#chunks[this.#first] = chunk.subarray(wanted)
        break
      }
      add(chunk)
      wanted -= chunk.length
      this.#first++
    }
    this.#forget()
  }

  /** A queue that is never empty must not keep what has left it. */
  #forget(): void {
    if (this.#first < fewChunks && this.#first < this.#chunks.length) return
    this.#chunks.splice(0, this.#first)
    this.#first = 0
  }

  clear(): void {
    this.#chunks = []
    this.#first = 0
    this.bytes = 0
  }
}
