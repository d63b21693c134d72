import type { Socket } from 'node:net'
import { joinForWrite } from './flow-control.ts'
import { maxFullQueueMs, maxQueuedBytes, maxQueuedFrames } from './limits.ts'

/** Events of a FrameQueue. */
export interface FrameQueueEvents {
  /** The queue has room again after `awaitRoom`. */
  room(): void
  /** Some written bytes have left. */
  progress(): void
  /** The queue was full and nothing left for `maxFullQueueMs`. */
  stalled(): void
}

/**
 * Writes all frames of a connection to its socket. Frames that the peer causes are counted until the kernel has them;
 * DATA is bounded by flow control and by its sender.
 */
export class FrameQueue {
  readonly #socket: Socket
  readonly #events: FrameQueueEvents
  /** Frames of this event loop iteration. */
  #unsent: Buffer[] = []
  #unsentBytes = 0
  #unsentFrames = 0
  #stall: NodeJS.Timeout | undefined
  /** Counted frames that the kernel does not have yet. */
  bytes = 0
  frames = 0

  constructor(socket: Socket, events: FrameQueueEvents) {
    this.#socket = socket
    this.#events = events
  }

  get isFull(): boolean {
    return this.bytes > maxQueuedBytes || this.frames > maxQueuedFrames
  }

  /** Adds a counted frame, which may have several parts. Small frames are written together: each write wakes the peer. */
  add(...parts: readonly Buffer[]): void {
    if (this.#unsent.length === 0) setImmediate(() => this.flush())
    let bytes = 0
    for (const part of parts) {
      this.#unsent.push(part)
      bytes += part.length
    }
    this.#unsentBytes += bytes
    this.#unsentFrames++
    this.bytes += bytes
    this.frames++
  }

  /** Writes DATA behind all frames added before. */
  write(parts: readonly Buffer[], written: () => void): void {
    for (const part of parts) this.#unsent.push(part)
    this.flush(written)
  }

  flush(written?: () => void): void {
    const parts = this.#unsent
    if (parts.length === 0 || this.#socket.destroyed || this.#socket.writableEnded) return
    const [bytes, frames] = [this.#unsentBytes, this.#unsentFrames]
    this.#unsent = []
    this.#unsentBytes = 0
    this.#unsentFrames = 0
    const slabs = joinForWrite(parts)
    for (const [index, slab] of slabs.entries())
      this.#socket.write(slab.bytes, () => {
        slab.release()
        this.#stall?.refresh()
        if (index < slabs.length - 1) return
        if (frames > 0) this.#left(bytes, frames)
        written?.()
        this.#events.progress()
      })
  }

  /** Reports `room` once half of the queue has left. */
  awaitRoom(): void {
    this.#stall ??= setTimeout(() => this.#events.stalled(), maxFullQueueMs).unref()
  }

  stop(): void {
    clearTimeout(this.#stall)
  }

  #left(bytes: number, frames: number): void {
    this.bytes -= bytes
    this.frames -= frames
    if (!this.#stall || this.bytes > maxQueuedBytes / 2 || this.frames > maxQueuedFrames / 2) return
    clearTimeout(this.#stall)
    this.#stall = undefined
    this.#events.room()
  }
}
