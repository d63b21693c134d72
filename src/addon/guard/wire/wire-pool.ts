import { connect, type Socket } from 'node:net'
import type { Clock } from '../../../core/index.ts'
import type { ResponseHead } from './response-head.ts'
import { ResponseParser } from './response-parser.ts'

/** Hears what comes of a request. */
export interface AnswerListener {
  head(head: ResponseHead): void
  body(chunk: Buffer): void
  /** With the trailers, as they came. */
  end(trailers: readonly string[]): void
  /** All that has arrived so far has been told. */
  settle(): void
  /** No more will come; `isStale` if a kept connection was closed before a byte of the answer. */
  failed(error: Error, isStale: boolean): void
}

/** A request under way. */
export interface WireExchange {
  /** Reads no further until it is resumed. */
  hold(): void
  resume(): void
  /** Cuts the connection unless the answer is complete. */
  cancel(): void
}

interface Wish {
  readonly bytes: string
  readonly isHead: boolean
  readonly listener: AnswerListener
  connection?: Connection
}

const idleMs = 30_000
const sweepMs = 5_000

/**
 * HTTP/1.1 connections to one add-on for requests without a body, which are nearly all: one write, one answer, and
 * the connection is kept for the next one. Node's own client does the same for much more CPU (bench/README.md).
 */
export class WirePool {
  readonly #place: { readonly host: string; readonly port: number }
  readonly #clock: Clock
  readonly #sweep: NodeJS.Timeout
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  readonly #waiting = new Set<Wish>()
  readonly #max: number
  #isDestroyed = false

  constructor(place: { readonly host: string; readonly port: number }, clock: Clock, max: number) {
    this.#place = place
    this.#max = max
    this.#clock = clock
    this.#sweep = setInterval(() => this.#closeOld(), sweepMs).unref()
  }

  /** Sends the head of a request; the listener hears the answer. */
  ask(bytes: string, isHead: boolean, listener: AnswerListener): WireExchange {
    const wish: Wish = { bytes, isHead, listener }
    const kept = this.#takeIdle()
    if (kept) kept.begin(wish)
    else if (this.#all.size < this.#max) this.#open(wish)
    else this.#waiting.add(wish)
    return {
      hold: () => wish.connection?.hold(),
      resume: () => wish.connection?.resume(),
      cancel: () => {
        this.#waiting.delete(wish)
        wish.connection?.cancel(wish)
      },
    }
  }

  /** Cuts every connection. */
  destroy(): void {
    this.#isDestroyed = true
    clearInterval(this.#sweep)
    for (const connection of this.#all) connection.destroy()
  }

  /** The one used last, so that the others can grow old. */
  #takeIdle(): Connection | undefined {
    const now = this.#clock.monotonic()
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      if (now < kept.goodUntil) return kept
      kept.destroy()
    }
    return undefined
  }

  #closeOld(): void {
    const now = this.#clock.monotonic()
    for (const connection of this.#idle) if (now >= connection.goodUntil) connection.destroy()
  }

  #open(wish: Wish): void {
    const connection = new Connection(connect({ ...this.#place, noDelay: true }), {
      clock: this.#clock,
      free: () => this.#release(connection),
      gone: () => {
        this.#all.delete(connection)
        const at = this.#idle.indexOf(connection)
        if (at >= 0) this.#idle.splice(at, 1)
        const next = this.#next()
        if (next) this.#open(next)
      },
    })
    this.#all.add(connection)
    connection.begin(wish)
  }

  #release(connection: Connection): void {
    const next = this.#next()
    if (next) connection.begin(next)
    else if (this.#isDestroyed) connection.destroy()
    else this.#idle.push(connection)
  }

  #next(): Wish | undefined {
    const [next] = this.#waiting
    if (next) this.#waiting.delete(next)
    return next
  }
}

interface Owner {
  readonly clock: Clock
  readonly free: () => void
  readonly gone: () => void
}

/** One connection, with at most one request at a time. */
class Connection {
  readonly #socket: Socket
  readonly #owner: Owner
  /** Until when an idle connection may be used, on the monotonic clock. */
  goodUntil = Number.POSITIVE_INFINITY
  #wish: Wish | undefined
  #parser: ResponseParser | undefined
  #served = 0
  #hasHeard = false
  #keepAliveMs: number | undefined

  constructor(socket: Socket, owner: Owner) {
    this.#socket = socket
    this.#owner = owner
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', (error) => this.#fail(error))
    socket.on('end', () => this.#ended())
    socket.on('close', () => {
      this.#fail(new Error('the add-on closed the connection'))
      this.#owner.gone()
    })
  }

  begin(wish: Wish): void {
    const { listener, isHead, bytes } = wish
    wish.connection = this
    this.#wish = wish
    this.#hasHeard = false
    const heard = {
      head: (head: ResponseHead): void => {
        this.#keepAliveMs = head.keepAliveMs ?? this.#keepAliveMs
        listener.head(head)
      },
      body: (chunk: Buffer): void => listener.body(chunk),
      end: (trailers: readonly string[]): void => listener.end(trailers),
    }
    this.#parser = new ResponseParser(heard, isHead)
    this.#socket.write(bytes, 'latin1')
  }

  hold(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  cancel(wish: Wish): void {
    if (this.#wish === wish) this.#socket.destroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    const wish = this.#wish
    const parser = this.#parser
    if (!wish || !parser) {
      // Nobody has asked for this.
      this.#socket.destroy()
      return
    }
    this.#hasHeard = true
    try {
      parser.take(bytes)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      this.#socket.destroy()
      return
    }
    wish.listener.settle()
    if (parser.isDone) this.#done(parser.keepsConnection)
  }

  #ended(): void {
    try {
      this.#parser?.close()
    } catch {
      return // told when the connection is closed
    }
    const wish = this.#wish
    this.#wish = undefined
    wish?.listener.settle()
  }

  #done(isKept: boolean): void {
    this.#wish = undefined
    this.#served += 1
    // A second less, since the add-on counts from its last byte and we from the arrival of it.
    const allowed = Math.min(idleMs, (this.#keepAliveMs ?? idleMs) - 1000)
    if (!isKept || !(allowed > 0) || this.#socket.destroyed) {
      this.#socket.destroy()
      return
    }
    this.#socket.resume()
    this.goodUntil = this.#owner.clock.monotonic() + allowed
    this.#owner.free()
  }

  #fail(error: Error): void {
    const wish = this.#wish
    this.#wish = undefined
    wish?.listener.failed(error, this.#served > 0 && !this.#hasHeard)
  }
}
