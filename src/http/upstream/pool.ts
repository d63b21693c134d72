import type { Clock } from '../../core/index.ts'
import { Connection, Exchange, type UpstreamStream } from './connection.ts'
import type { ResponseListener, Upstream, UpstreamExchange, UpstreamRequest } from './upstream.ts'

/** Opens a connection, unless the signal aborts before. */
export type OpenConnection = (signal: AbortSignal) => Promise<UpstreamStream>

/** Connections that are open or being opened. */
class ConnectionSet {
  readonly open = new Set<Connection>()
  readonly opening = new Set<AbortController>()

  get size(): number {
    return this.open.size + this.opening.size
  }

  destroy(): void {
    for (const opening of this.opening) opening.abort()
    for (const connection of this.open) connection.cancel()
  }
}

const sweepMs = 5_000

/**
 * HTTP/1.1 connections to one server: one request at a time on each, kept open for the next one. Node's own client does
 * the same for much more CPU time (bench/README.md).
 */
export class Http1Upstream implements Upstream {
  readonly #open: OpenConnection
  readonly #clock: Clock
  readonly #maxConnections: number
  readonly #shared = new ConnectionSet()
  /** For one upgrade each: neither limited nor kept, and no longer here once they are upgraded. */
  readonly #upgrading = new ConnectionSet()
  readonly #idle: Connection[] = []
  readonly #waiting = new Set<Exchange>()
  #sweep: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(open: OpenConnection, clock: Clock, maxConnections: number) {
    this.#open = open
    this.#clock = clock
    this.#maxConnections = maxConnections
  }

  send(request: UpstreamRequest, listener: ResponseListener): UpstreamExchange {
    const exchange = new Exchange(request, listener)
    if (request.upgrade === undefined) this.#serve(exchange)
    else this.#openFor(exchange, this.#upgrading)
    return exchange
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#sweep)
    for (const connection of this.#idle.splice(0)) connection.cancel()
  }

  destroy(): void {
    this.close()
    for (const exchange of this.#waiting) exchange.cancel()
    this.#shared.destroy()
    this.#upgrading.destroy()
  }

  #serve(exchange: Exchange): void {
    const kept = this.#takeIdle()
    if (kept) kept.begin(exchange)
    else if (this.#shared.size < this.#maxConnections) this.#openFor(exchange, this.#shared)
    else this.#wait(exchange)
  }

  #wait(exchange: Exchange): void {
    this.#waiting.add(exchange)
    const cancel = (): void => {
      if (this.#waiting.delete(exchange)) exchange.listener.failed(new Error('aborted'), false)
    }
    exchange.carrier = { cancel }
  }

  /** The one used last, so that the others can expire. */
  #takeIdle(): Connection | undefined {
    const now = this.#clock.monotonic()
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      if (kept.isUsableAt(now)) return kept
      kept.cancel()
    }
    return undefined
  }

  #openFor(exchange: Exchange, set: ConnectionSet): void {
    const opening = new AbortController()
    set.opening.add(opening)
    exchange.carrier = { cancel: () => opening.abort(new Error('aborted')) }
    this.#open(opening.signal).then(
      (stream) => {
        set.opening.delete(opening)
        const connection = this.#connect(stream, set)
        connection.begin(exchange)
        // It was opened all the same.
        if (opening.signal.aborted) exchange.cancel()
      },
      (error: Error) => {
        set.opening.delete(opening)
        exchange.carrier = undefined
        exchange.listener.failed(error, false)
        if (set === this.#shared) this.#serveNext()
      },
    )
  }

  #connect(stream: UpstreamStream, set: ConnectionSet): Connection {
    const connection: Connection = new Connection(stream, {
      clock: this.#clock,
      free: () => {
        if (set === this.#shared) this.#keep(connection)
        else connection.cancel()
      },
      gone: () => {
        set.open.delete(connection)
        if (set === this.#shared) this.#forget(connection)
      },
    })
    set.open.add(connection)
    return connection
  }

  #keep(connection: Connection): void {
    if (this.#isClosed) {
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

  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#serveNext()
  }

  /** There is room for a connection again. */
  #serveNext(): void {
    const next = this.#nextWaiting()
    if (next) this.#serve(next)
  }

  #nextWaiting(): Exchange | undefined {
    const [next] = this.#waiting
    if (next) this.#waiting.delete(next)
    return next
  }

  #closeExpired(): void {
    const now = this.#clock.monotonic()
    const all = this.#idle.splice(0)
    for (const connection of all) {
      if (connection.isUsableAt(now)) this.#idle.push(connection)
      else connection.cancel()
    }
    this.#sweep = undefined
    if (this.#idle.length > 0) this.#sweepLater()
  }

  #sweepLater(): void {
    this.#sweep ??= setTimeout(() => this.#closeExpired(), sweepMs).unref()
  }
}
