import type { Clock } from '../../core/index.ts'
import { type OpenConnection, WireConnection } from './wire-connection.ts'
import { type AnswerListener, Asking, type WireExchange } from './wire-exchange.ts'

const sweepMs = 5_000

/**
 * HTTP/1.1 connections to one place for requests without a body, which are nearly all: one write, one answer, and
 * the connection is kept for the next one. Node's own client does the same for much more CPU (bench/README.md).
 */
export class WirePool {
  readonly #open: OpenConnection
  readonly #clock: Clock
  readonly #max: number
  readonly #idle: WireConnection[] = []
  readonly #all = new Set<WireConnection>()
  readonly #opening = new Set<AbortController>()
  readonly #waiting = new Set<Asking>()
  #sweep: NodeJS.Timeout | undefined
  #isRetired = false

  constructor(open: OpenConnection, clock: Clock, max: number) {
    this.#open = open
    this.#max = max
    this.#clock = clock
  }

  /** Sends the head of a request; the listener hears the answer. */
  ask(bytes: string, isHead: boolean, listener: AnswerListener): WireExchange {
    const asking = new Asking(bytes, isHead, listener)
    this.#serve(asking)
    return asking
  }

  /** Keeps no connection any more; those that carry a request finish it. */
  retire(): void {
    this.#isRetired = true
    clearTimeout(this.#sweep)
    for (const connection of this.#idle.splice(0)) connection.cancel()
  }

  /** Cuts every connection. */
  destroy(): void {
    this.retire()
    for (const asking of this.#waiting) asking.cancel()
    for (const opening of this.#opening) opening.abort()
    for (const connection of this.#all) connection.cancel()
  }

  #serve(asking: Asking): void {
    const kept = this.#takeIdle()
    if (kept) kept.begin(asking)
    else if (this.#all.size + this.#opening.size < this.#max) this.#openFor(asking)
    else this.#wait(asking)
  }

  #wait(asking: Asking): void {
    this.#waiting.add(asking)
    const cancel = (): void => {
      if (this.#waiting.delete(asking)) asking.listener.failed(new Error('aborted'), false)
    }
    asking.carrier = { cancel }
  }

  /** The one used last, so that the others can grow old. */
  #takeIdle(): WireConnection | undefined {
    const now = this.#clock.monotonic()
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      if (kept.isGoodAt(now)) return kept
      kept.cancel()
    }
    return undefined
  }

  #openFor(asking: Asking): void {
    const opening = new AbortController()
    this.#opening.add(opening)
    asking.carrier = { cancel: () => opening.abort(new Error('aborted')) }
    this.#open(opening.signal).then(
      (stream) => {
        this.#opening.delete(opening)
        const connection: WireConnection = new WireConnection(stream, {
          clock: this.#clock,
          free: () => this.#keep(connection),
          gone: () => this.#forget(connection),
        })
        this.#all.add(connection)
        connection.begin(asking)
        // It was opened all the same.
        if (opening.signal.aborted) asking.cancel()
      },
      (error: Error) => {
        this.#opening.delete(opening)
        asking.carrier = undefined
        asking.listener.failed(error, false)
        this.#serveNext()
      },
    )
  }

  #keep(connection: WireConnection): void {
    if (this.#isRetired) {
      connection.cancel()
      return
    }
    const next = this.#nextWaiting()
    if (next) {
      connection.begin(next)
      return
    }
    this.#idle.push(connection)
    this.#sweepLater()
  }

  #forget(connection: WireConnection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#serveNext()
  }

  /** A place has become free without a connection. */
  #serveNext(): void {
    const next = this.#nextWaiting()
    if (next) this.#serve(next)
  }

  #nextWaiting(): Asking | undefined {
    const [next] = this.#waiting
    if (next) this.#waiting.delete(next)
    return next
  }

  #closeOld(): void {
    const now = this.#clock.monotonic()
    const all = this.#idle.splice(0)
    for (const connection of all) {
      if (connection.isGoodAt(now)) this.#idle.push(connection)
      else connection.cancel()
    }
    this.#sweep = undefined
    if (this.#idle.length > 0) this.#sweepLater()
  }

  #sweepLater(): void {
    this.#sweep ??= setTimeout(() => this.#closeOld(), sweepMs).unref()
  }
}
