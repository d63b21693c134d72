import { minKeptBytes } from '../../core/index.ts'

/**
 * What the other end may have on its way to us. Whatever is on its way stands in one queue, so a large window makes
 * everybody wait for whoever sends most; a small one leaves a long path empty.
 */
const smallestBytes = 512 * 1024
const largestBytes = 64 * 1024 * 1024

/** The window is long enough when it takes so many round trips to use it up. */
const enoughRoundTrips = 2

/** The receive window of a stream: small on a short path, and growing with the distance. */
export class FlightWindow {
  #size = smallestBytes
  #roundStart = 0

  get size(): number {
    return this.#size
  }

  /** Half the window has been used up: tells how large it is from now on. */
  used(nowMs: number, roundTripMs: number): number {
    const elapsedMs = nowMs - this.#roundStart
    this.#roundStart = nowMs
    if (2 * elapsedMs < enoughRoundTrips * roundTripMs)
      this.#size = Math.min(2 * this.#size, largestBytes)
    return this.#size
  }
}

/** The most that is joined into one write; a little more than what a link hands over at once. */
const slabBytes = 384 * 1024
/** Slabs that wait for the next write; a connection seldom has more than two on their way. */
const spareSlabs = 8
/** What is shorter than this is not worth a slab. */
const smallBytes = 4 * 1024

const spare: Buffer[] = []

/** A piece of memory to be written at once, and given back when it has left. */
export interface Slab {
  readonly bytes: Buffer
  release(): void
}

/**
 * Joins parts into few long pieces. TLS in Node.js joins them anyway, in memory that it takes anew for every write and
 * leaves to the garbage collector; this memory is used again.
 */
export function joinForWrite(parts: readonly Buffer[]): Slab[] {
  const only = parts.length === 1 ? parts[0] : undefined
  if (only) return [{ bytes: only, release: () => {} }]
  let total = 0
  for (const part of parts) total += part.length
  if (total <= smallBytes) return [{ bytes: Buffer.concat(parts, total), release: () => {} }]
  const slabs: Slab[] = []
  let memory = take()
  let used = 0
  for (const part of parts) {
    let start = 0
    while (start < part.length) {
      if (used === slabBytes) {
        slabs.push(filled(memory, used))
        memory = take()
        used = 0
      }
      const copied = part.copy(memory, used, start)
      used += copied
      start += copied
    }
  }
  slabs.push(filled(memory, used))
  return slabs
}

const take = (): Buffer => spare.pop() ?? Buffer.allocUnsafeSlow(slabBytes)

function filled(memory: Buffer, bytes: number): Slab {
  return {
    bytes: memory.subarray(0, bytes),
    release: () => {
      if (spare.length < spareSlabs) spare.push(memory)
    },
  }
}

/** Chunks that may stay in memory although they have left, because moving the others costs time. */
const fewChunks = 16

/** Where small chunks are copied together. */
const gatherBytes = 16 * 1024

/** Chunks that wait to be sent, cut at will. Behind a few others small ones are copied together, so that they cost their bytes. */
export class SendQueue {
  #chunks: Buffer[] = []
  #first = 0
  /** The memory of the last chunk while small ones are added to it. */
  #gathering: Buffer | undefined
  bytes = 0

  push(chunk: Buffer): void {
    this.bytes += chunk.length
    if (chunk.length < minKeptBytes && this.#chunks.length - this.#first >= fewChunks) {
      this.#gather(chunk)
      return
    }
    this.#seal()
    this.#chunks.push(chunk)
  }

  #gather(chunk: Buffer): void {
    const used = this.#gathering ? (this.#chunks.at(-1)?.length ?? 0) : 0
    if (!this.#gathering || used + chunk.length > gatherBytes) {
      this.#seal()
      this.#gathering = Buffer.allocUnsafeSlow(gatherBytes)
      this.#chunks.push(this.#gathering.subarray(0, chunk.copy(this.#gathering)))
      return
    }
    chunk.copy(this.#gathering, used)
    this.#chunks[this.#chunks.length - 1] = this.#gathering.subarray(0, used + chunk.length)
  }

  #seal(): void {
    const last = this.#chunks.at(-1)
    if (this.#gathering && last && last.length < gatherBytes / 2)
      this.#chunks[this.#chunks.length - 1] = Buffer.from(last)
    this.#gathering = undefined
  }

  /** Moves exactly `bytes`, which must be there, to `add`. */
  take(bytes: number, add: (part: Buffer) => void): void {
    this.bytes -= bytes
    let wanted = bytes
    while (wanted > 0) {
      const chunk = this.#chunks[this.#first]
      if (chunk === undefined) throw new RangeError('more taken than was queued')
      if (this.#first === this.#chunks.length - 1) this.#gathering = undefined
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
    this.#gathering = undefined
    this.bytes = 0
  }
}
