import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { HeldChunks, minKeptBytes } from '../../core/index.ts'

/** What a leg tells whoever reads from it. */
export interface LegEvents {
  /** Bytes that came in; they count as unread until `consumed` is called for them. */
  data(chunk: Buffer): void
  /** No more bytes will come; the other direction stays open. */
  finished(): void
  /** Bytes given to `write` have left: `backlog` is small again. */
  drained(): void
  /** The leg is gone, in both directions; comes exactly once and last. */
  closed(error?: Error): void
}

/**
 * One side of a tunnelled connection: a socket, or a channel of a link.
 * Everything is counted in bytes, so that a side that does not read holds up nobody else.
 */
export interface Leg {
  /** To be called once, in the same tick in which the leg was handed over; nothing is reported before. */
  start(events: LegEvents): void
  /** Takes bytes and keeps them in order; the caller stops reading elsewhere while `backlog` is above its limit. */
  write(chunk: Buffer): void
  /** Bytes taken by `write` that have not left yet. */
  readonly backlog: number
  /** The bytes reported by `data` that the reader is done with. */
  consumed(bytes: number): void
  /** Ends our direction once everything written has left. */
  finish(): void
  /** Ends both directions; what was written before still leaves if `error` is absent. */
  close(error?: Error): void
}

/** Unread bytes above which a socket is no longer read. */
const highWaterBytes = 128 * 1024
/** Small writes to a socket that is behind are gathered up to this. */
const gatherBytes = 16 * 1024
/** How long a closed socket may take to get rid of its last bytes and to hear the other side's end. */
const lingerMs = 10_000

const corked = new Set<Duplex>()

function uncorkAll(): void {
  const sockets = [...corked]
  corked.clear()
  for (const socket of sockets) socket.uncork()
}

/**
 * Holds a socket's writes back until everything that is ready has been read.
 * One writev for many small chunks is the largest single gain on the data path.
 */
function corkUntilIdle(socket: Duplex): void {
  if (corked.has(socket)) return
  socket.cork()
  if (corked.size === 0) setImmediate(uncorkAll)
  corked.add(socket)
}

class SocketLeg implements Leg {
  readonly #socket: Duplex
  #events: LegEvents | undefined
  #unread = 0
  /** Small writes behind a socket that has enough to do. */
  readonly #gathered = new HeldChunks()
  #error: Error | undefined
  #isClosing = false

  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('error', (error) => {
      this.#error ??= error
    })
  }

  get backlog(): number {
    return this.#socket.writableLength + this.#gathered.bytes
  }

  start(events: LegEvents): void {
    const socket = this.#socket
    this.#events = events
    if (socket.destroyed) {
      queueMicrotask(() => events.closed(this.#error))
      return
    }
    socket.on('data', (chunk: Buffer) => this.#received(chunk))
    socket.on('end', () => {
      if (!this.#isClosing) this.#events?.finished()
    })
    socket.on('drain', () => {
      this.#writeGathered()
      this.#events?.drained()
    })
    socket.on('close', () => {
      this.#events?.closed(this.#error)
      this.#events = undefined
    })
  }

  #received(chunk: Buffer): void {
    if (this.#isClosing) return
    this.#unread += chunk.length
    if (this.#unread > highWaterBytes) this.#socket.pause()
    this.#events?.data(chunk)
  }

  consumed(bytes: number): void {
    const before = this.#unread
    this.#unread -= bytes
    if (before > highWaterBytes && this.#unread <= highWaterBytes) this.#socket.resume()
  }

  write(chunk: Buffer): void {
    if (this.#isClosing || this.#socket.writableEnded || this.#socket.destroyed) return
    // Only a socket that will report `drain` may keep something waiting.
    const gathers = chunk.length < minKeptBytes && this.#socket.writableNeedDrain
    if (gathers || this.#gathered.bytes > 0) {
      this.#gathered.push(chunk)
      if (this.#gathered.bytes < gatherBytes) return
      this.#writeGathered()
      return
    }
    corkUntilIdle(this.#socket)
    this.#socket.write(chunk)
  }

  #writeGathered(): void {
    if (this.#gathered.bytes === 0 || this.#socket.writableEnded || this.#socket.destroyed) return
    corkUntilIdle(this.#socket)
    for (const chunk of this.#gathered.take()) this.#socket.write(chunk)
  }

  finish(): void {
    this.#writeGathered()
    if (!this.#socket.writableEnded) this.#socket.end()
  }

  close(error?: Error): void {
    if (this.#isClosing || this.#socket.destroyed) return
    this.#isClosing = true
    if (error) this.#reset()
    else this.#linger()
  }

  #reset(): void {
    const socket = this.#socket
    // A plain end would let the far side take a torn answer for a whole one.
    if (isResettable(socket)) socket.resetAndDestroy()
    else socket.destroy()
  }

  #linger(): void {
    const socket = this.#socket
    const giveUp = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(giveUp))
    this.finish()
    // Closing with bytes unread would make the kernel reset the connection and lose what we wrote.
    socket.resume()
  }
}

/** Only TCP itself has a reset, and only until its end has been sent; Node.js throws or hangs otherwise. */
const isResettable = (socket: Duplex): socket is Socket =>
  socket instanceof Socket &&
  !(socket instanceof TLSSocket) &&
  socket.remoteFamily !== undefined &&
  !socket.writableEnded

/** A leg on a socket, which must allow half-open connections; its writes leave together once per turn of the event loop. */
export const socketLeg = (socket: Duplex): Leg => new SocketLeg(socket)
