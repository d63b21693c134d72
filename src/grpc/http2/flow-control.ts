import type { Writable } from 'node:stream'
import { minKeptBytes } from '../../core/index.ts'
import { defaultWindowBytes, Http2Error, maxWindowBytes } from './frames.ts'
import { maxSocketBytes, openWindowBytes } from './limits.ts'

/**
 * Bounds of the receive window. Everything in flight stands in one queue, so a large window delays all streams of the
 * peer, and a small one leaves a long path idle.
 */
const minAdaptiveBytes = 512 * 1024
const maxAdaptiveBytes = 64 * 1024 * 1024

/** The window is large enough if the peer needs this many round trips to use it up. */
const minRoundTrips = 2

/** Receive window that adapts to the bandwidth-delay product: it doubles while half of it is used in less than one round trip. */
export class AdaptiveReceiveWindow {
  #size = minAdaptiveBytes
  #roundStart = 0

  get size(): number {
    return this.#size
  }

  /** Half the window has been used: returns the size from now on. */
  halfUsed(nowMs: number, roundTripMs: number): number {
    const elapsedMs = nowMs - this.#roundStart
    this.#roundStart = nowMs
    if (2 * elapsedMs < minRoundTrips * roundTripMs)
      this.#size = Math.min(2 * this.#size, maxAdaptiveBytes)
    return this.#size
  }
}

/** The receive window of a connection: the default until one of its streams is read. */
export class ConnectionReceiveWindow {
  readonly #update: (bytes: number) => void
  #size = defaultWindowBytes
  #open = defaultWindowBytes

  /** `update` sends a WINDOW_UPDATE frame. */
  constructor(update: (bytes: number) => void) {
    this.#update = update
  }

  /** @throws Http2Error if the peer has sent more than it may */
  received(bytes: number): void {
    this.#open -= bytes
    if (this.#open < 0)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'peer ignores the window of the connection')
    if (this.#size > defaultWindowBytes) this.widen()
  }

  /** A stream is read now. */
  openFully(): void {
    this.#size = openWindowBytes
    this.widen()
  }

  /** Opens the window again when half of it is used. */
  widen(): void {
    const bytes = this.#size - this.#open
    if (bytes < this.#size / 2) return
    this.#open = this.#size
    this.#update(bytes)
  }
}

/** The window for our DATA on a connection, and the streams that wait for it or for the socket. */
export class ConnectionSendWindow {
  readonly #socket: Writable
  readonly #blocked = new Set<{ pump(): void }>()
  #isWaitingForSocket = false
  bytes = defaultWindowBytes

  constructor(socket: Writable) {
    this.#socket = socket
  }

  /** So much is queued for the socket that DATA has to stay in its stream. */
  get isCongested(): boolean {
    return this.#socket.writableLength > maxSocketBytes
  }

  /** The stream has DATA that the connection cannot take. */
  block(stream: { pump(): void }): void {
    this.#blocked.add(stream)
    if (this.isCongested) this.#isWaitingForSocket = true
  }

  remove(stream: { pump(): void }): void {
    this.#blocked.delete(stream)
  }

  /** The peer has opened the window. @throws Http2Error above its maximum */
  widen(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > maxWindowBytes)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'window of the connection is too large')
    this.#pumpBlocked()
  }

  /** The socket has sent some of its bytes. */
  socketProgress(): void {
    if (!this.#isWaitingForSocket || this.isCongested) return
    this.#isWaitingForSocket = false
    this.#pumpBlocked()
  }

  #pumpBlocked(): void {
    let count = this.#blocked.size
    for (const stream of this.#blocked) {
      if (count-- === 0 || this.bytes <= 0) return
      // A stream that is still blocked is added again behind the others.
      this.#blocked.delete(stream)
      stream.pump()
    }
  }
}

/** Bytes that are joined into one write; a little more than a tunnel link writes at once. */
const slabBytes = 384 * 1024
/** Slabs kept for the next writes; a connection seldom uses more than two at a time. */
const maxSpareSlabs = 8
/** Shorter writes are concatenated without a slab. */
const minSlabBytes = 4 * 1024

const spare: Buffer[] = []

/** Memory for one write; release it when the bytes have left. */
export interface Slab {
  readonly bytes: Buffer
  release(): void
}

/**
 * Joins parts into few long chunks. TLS in Node.js joins them anyway, in memory that it allocates for every write and
 * leaves to the garbage collector; this memory is reused.
 */
export function joinForWrite(parts: readonly Buffer[]): Slab[] {
  const only = parts.length === 1 ? parts[0] : undefined
  if (only) return [{ bytes: only, release: () => {} }]
  let total = 0
  for (const part of parts) total += part.length
  if (total <= minSlabBytes) return [{ bytes: Buffer.concat(parts, total), release: () => {} }]
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
      if (spare.length < maxSpareSlabs) spare.push(memory)
    },
  }
}

/** Chunks that may stay in memory after they were taken, because moving the others costs time. */
const maxTakenChunks = 16

/** Memory into which small chunks are copied. */
const gatherBytes = 16 * 1024

/** Queued chunks that are split without copying. Behind a few others, small chunks are copied together: they cost their bytes. */
export class SendQueue {
  #chunks: Buffer[] = []
  #first = 0
  /** The memory of the last chunk while small ones are added to it. */
  #gathering: Buffer | undefined
  bytes = 0

  push(chunk: Buffer): void {
    this.bytes += chunk.length
    if (chunk.length < minKeptBytes && this.#chunks.length - this.#first >= maxTakenChunks) {
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

  /** Passes exactly `bytes`, which must be queued, to `add`. */
  take(bytes: number, add: (part: Buffer) => void): void {
    this.bytes -= bytes
    let left = bytes
    while (left > 0) {
      const chunk = this.#chunks[this.#first]
      if (chunk === undefined) throw new RangeError('more taken than was queued')
      if (this.#first === this.#chunks.length - 1) this.#gathering = undefined
      if (chunk.length > left) {
        add(chunk.subarray(0, left))
        this.#chunks[this.#first] = chunk.subarray(left)
        break
      }
      add(chunk)
      left -= chunk.length
      this.#first++
    }
    this.#compact()
  }

  /** Frees taken chunks, also if the queue is never empty. */
  #compact(): void {
    if (this.#first < maxTakenChunks && this.#first < this.#chunks.length) return
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
