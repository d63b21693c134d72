import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { HeldChunks, minKeptBytes } from '../../core/index.ts'

/** Events of a byte stream. */
export interface ByteStreamEvents {
  /** Received bytes; they count as unread until `consumed` is called for them. */
  data(chunk: Buffer): void
  /** The peer has ended its direction; ours stays open. */
  finished(): void
  /** Written bytes have left: `backlog` is small again. */
  drained(): void
  /** Both directions are closed; called exactly once and last. */
  closed(error?: Error): void
}

/**
 * One side of a tunnelled connection: a socket, or a channel of a link. All limits are in bytes, so that a side that does
 * not read does not delay others.
 */
export interface ByteStream {
  /** Call once, in the tick in which the stream was received; there are no events before. */
  start(events: ByteStreamEvents): void
  /** Queues bytes; the caller stops reading elsewhere while `backlog` is above its limit. */
  write(chunk: Buffer): void
  /** Written bytes that have not left yet. */
  readonly backlog: number
  /** The reader has processed bytes of `data`. */
  consumed(bytes: number): void
  /** Ends our direction once everything written has left. */
  finish(): void
  /** Closes both directions; without `error`, everything written before still leaves. */
  close(error?: Error): void
}

/** Unread bytes above which a socket is paused. */
const highWaterBytes = 128 * 1024
/** Small writes to a congested socket are joined up to this size. */
const gatherBytes = 16 * 1024
/** How long a closed socket may take to send its last bytes and to receive the end of the peer. */
const lingerMs = 10_000

const corked = new Set<Duplex>()

function uncorkAll(): void {
  const sockets = [...corked]
  corked.clear()
  for (const socket of sockets) socket.uncork()
}

/**
 * Delays the writes of a socket until everything that is ready has been read. One writev for many small chunks is the
 * largest single gain on the data path.
 */
function corkUntilIdle(socket: Duplex): void {
  if (corked.has(socket)) return
  socket.cork()
  if (corked.size === 0) setImmediate(uncorkAll)
  corked.add(socket)
}

class SocketStream implements ByteStream {
  readonly #socket: Duplex
  #events: ByteStreamEvents | undefined
  #unread = 0
  /** Small writes to a congested socket. */
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

  start(events: ByteStreamEvents): void {
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
    // Only a socket that will emit `drain` may keep chunks waiting.
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
    // After a plain end the peer would take a truncated response for a complete one.
    if (isResettable(socket)) socket.resetAndDestroy()
    else socket.destroy()
  }

  #linger(): void {
    const socket = this.#socket
    const giveUp = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(giveUp))
    this.finish()
    // Closing with unread bytes would make the kernel reset the connection and lose written bytes.
    socket.resume()
  }
}

/** Only TCP has a reset, and only before its end was sent; otherwise Node.js throws or hangs. */
const isResettable = (socket: Duplex): socket is Socket =>
  socket instanceof Socket &&
  !(socket instanceof TLSSocket) &&
  socket.remoteFamily !== undefined &&
  !socket.writableEnded

/** A byte stream on a socket, which must allow half-open connections. Its writes leave together, once per event loop iteration. */
export const socketStream = (socket: Duplex): ByteStream => new SocketStream(socket)
