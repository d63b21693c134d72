import { getEventListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  ApiError,
  type AuditNotes,
  type Authentication,
  type AuthorizedRequest,
  type Clock,
  type Decision,
  type KubeStatus,
  type RequestInfo,
  type UpgradingClient,
} from '../../core/index.ts'
import type { Ticket } from '../fairness/fair-queue.ts'

/**
 * Spare abort controllers, one per connection. Creating a signal costs more than all checks of a
 * request together, and nearly none is ever aborted. A controller is reused only if it has no
 * listener left, and only on its own connection: a handler that has kept the signal still learns
 * when that client disconnects.
 */
export class SignalPool {
  readonly #spare = new WeakMap<object, AbortController>()

  take(request: IncomingMessage): AbortController {
    const connection = connectionOf(request)
    const spare = this.#spare.get(connection)
    if (spare === undefined) return new AbortController()
    this.#spare.delete(connection)
    return spare
  }

  release(request: IncomingMessage, controller: AbortController): void {
    const { signal } = controller
    if (signal.aborted || getEventListeners(signal, 'abort').length > 0) return
    this.#spare.set(connectionOf(request), controller)
  }
}

/** An HTTP/2 request has a proxy object as `socket`; its session is the connection. */
function connectionOf(request: IncomingMessage): object {
  if (!('stream' in request)) return request.socket
  const { stream } = request
  const session =
    typeof stream === 'object' && stream && 'session' in stream ? stream.session : null
  return typeof session === 'object' && session ? session : request
}

/** The socket of a request for another protocol, and the bytes that came with it. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

const notParsed: RequestInfo = Object.freeze({
  isResourceRequest: false,
  path: '',
  verb: '',
  group: '',
  version: '',
  namespace: '',
  resource: '',
  subresource: '',
  name: '',
  query: new URLSearchParams(),
  rest: '',
})

/** What runs an exchange, and what all exchanges share. */
export interface ExchangeOwner {
  readonly clock: Clock
  readonly signals: SignalPool
  /** Responds with `error`, unless there is a response already. */
  fail(exchange: Exchange, error: unknown): void
  reauthenticate(request: IncomingMessage, signal: AbortSignal): Promise<Authentication | undefined>
}

/** Recorded, and never sent, for a client that disconnected before there was a response. */
export const clientClosedRequest = 499

/** Why work is stopped when no client waits for its result. */
export const clientDisconnected = new Error('the client has disconnected')

/** One request and its response on their way through the pipeline, and what is known of them so far. */
export class Exchange implements AuthorizedRequest, AuditNotes {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upgrade: Upgrade | undefined
  /** Epoch milliseconds, for the audit. */
  readonly receivedAt: number
  /** Monotonic milliseconds, for durations. */
  readonly startedAt: number
  /** Read at the start, because a closed HTTP/2 stream has no socket. */
  readonly sourceAddress: string
  auditId = ''
  info: RequestInfo = notParsed
  longRunning = false
  /** The authenticated identity, if the request impersonates another one. */
  impersonator: Authentication | undefined
  /** Monotonic milliseconds. */
  identifiedAt = 0
  decision: Decision | undefined
  /** What the pipeline responded in place of a handler. */
  failure: KubeStatus | undefined
  ticket: Ticket | undefined
  deadline: NodeJS.Timeout | undefined
  /** The connection is done with the request. */
  over = false
  /** Its index in `OpenExchanges`. */
  index = -1
  readonly #owner: ExchangeOwner
  #isUpgraded = false
  #followsDrain = false
  #authentication: Authentication | undefined
  #controller: AbortController | undefined
  #abortedBecause: Error | undefined
  #endListeners: (() => void)[] | undefined
  #annotations: Map<string, string> | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    owner: ExchangeOwner,
    upgrade?: Upgrade,
  ) {
    this.request = request
    this.response = response
    this.upgrade = upgrade
    this.#owner = owner
    this.receivedAt = owner.clock.now()
    this.startedAt = owner.clock.monotonic()
    this.sourceAddress = request.socket.remoteAddress ?? ''
  }

  /** The identity that acts, after impersonation. To read it before it is known is a bug, and throws. */
  get authentication(): Authentication {
    if (this.#authentication === undefined) throw new Error('the request is not authenticated yet')
    return this.#authentication
  }

  set authentication(value: Authentication) {
    this.#authentication = value
  }

  /** The same, for the audit log, which also records requests without one. */
  get knownAuthentication(): Authentication | undefined {
    return this.#authentication
  }

  /** The audit annotations of this request. */
  get audit(): AuditNotes {
    return this
  }

  reauthenticate(signal: AbortSignal): Promise<Authentication | undefined> {
    return this.#owner.reauthenticate(this.request, signal)
  }

  /** Aborts when the client has disconnected, the deadline has passed or the credential has expired. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = this.#owner.signals.take(this.request)
      if (this.#abortedBecause) this.#controller.abort(this.#abortedBecause)
    }
    return this.#controller.signal
  }

  /** True if errors from now on are a consequence of the abort. */
  get aborted(): boolean {
    return this.#abortedBecause !== undefined
  }

  abort(why: Error): void {
    this.#abortedBecause ??= why
    this.#controller?.abort(this.#abortedBecause)
  }

  /** Adds an annotation to the audit event; the first value of a key counts, as in Kubernetes. */
  annotate(key: string, value: string): void {
    this.#annotations ??= new Map()
    if (!this.#annotations.has(key)) this.#annotations.set(key, value)
  }

  get annotations(): ReadonlyMap<string, string> | undefined {
    return this.#annotations
  }

  /** Calls `listener` when the exchange is over. */
  onEnd(listener: () => void): void {
    this.#endListeners ??= []
    this.#endListeners.push(listener)
  }

  /** Calls `listener` whenever the connection has sent what waited on it; only the first call counts. */
  onDrain(listener: () => void): void {
    if (this.#followsDrain) return
    this.#followsDrain = true
    // On HTTP/1.1 a watch also writes to the socket itself, which its response does not notice.
    const source = this.request.httpVersionMajor === 1 ? this.request.socket : this.response
    source.on('drain', listener)
    this.onEnd(() => source.off('drain', listener))
  }

  /** To be called once, when the connection is done with the request. */
  end(): void {
    this.over = true
    clearTimeout(this.deadline)
    for (const listener of this.#endListeners ?? []) listener()
    if (!this.response.writableEnded) this.abort(clientDisconnected)
    // A stream's signal may have been passed to work that outlives it; it is not reused.
    if (this.#controller && !this.longRunning)
      this.#owner.signals.release(this.request, this.#controller)
  }

  /** The deadline has passed: responds with `error` if there is no response yet, and stops the work. */
  expire(error: Error): void {
    if (this.response.writableEnded) {
      this.disconnect(error)
      return
    }
    this.#owner.fail(this, error)
    this.abort(error)
  }

  /** Closes the connection, or the HTTP/2 stream, without a response. */
  disconnect(why: Error): void {
    if (this.#isUpgraded) this.upgrade?.socket.destroy()
    // Without an error, HTTP/2 ends the stream as if it were complete.
    else this.response.destroy(why)
    // A pipelined response has no socket before its turn, and would be kept until then.
    if (this.response.socket === null) this.request.socket.destroy()
    // Only now: a handler that learns of it in time ends the response as if it were complete.
    this.abort(why)
  }

  /** The client of a request for another protocol. */
  upgradingClient({ socket, head }: Upgrade): UpgradingClient {
    return { response: this.response, head, claim: () => this.#claim(socket) }
  }

  #claim(socket: Socket): Socket {
    if (this.over || socket.destroyed)
      throw new ApiError('ServiceUnavailable', 'the connection is closed')
    this.response.detachSocket(socket)
    this.#isUpgraded = true
    return socket
  }

  /** The status code of the response, if the client was still connected. */
  get code(): number {
    if (this.#isUpgraded) return 101
    return this.response.headersSent ? this.response.statusCode : clientClosedRequest
  }
}

/** All exchanges that are under way, so that they can be ended. */
export class OpenExchanges {
  // Not a Set: the tables that it outgrows keep their former members, and one another, alive until
  // a full garbage collection, at thousands of requests per second.
  readonly #open: Exchange[] = []
  readonly #waiting: (() => void)[] = []

  add(exchange: Exchange): void {
    exchange.index = this.#open.push(exchange) - 1
  }

  delete(exchange: Exchange): void {
    if (this.#open[exchange.index] !== exchange) return
    const last = this.#open.pop()
    if (last !== undefined && last !== exchange) {
      this.#open[exchange.index] = last
      last.index = exchange.index
    }
    if (this.#open.length > 0 || this.#waiting.length === 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** How many of the exchanges under way are long-running. */
  longRunning(): number {
    let count = 0
    for (const exchange of this.#open) if (exchange.longRunning) count++
    return count
  }

  /** Exchanges that are not long-running, as they are now. */
  requests(): Exchange[] {
    return this.#open.filter(({ longRunning }) => !longRunning)
  }

  /** Aborts long-running exchanges. */
  endStreams(why: Error): void {
    // A copy, because an exchange that ends is removed.
    for (const exchange of this.#open.filter((each) => each.longRunning)) exchange.abort(why)
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

/** Distinguishes a value from a promise, so that the former costs no tick. */
export function isPending<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise
}
