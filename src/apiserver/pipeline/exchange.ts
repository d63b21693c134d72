import { getEventListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type {
  AuditNotes,
  Authentication,
  Clock,
  Decision,
  KubeStatus,
  RequestInfo,
} from '../../core/index.ts'
import type { Ticket } from '../fairness/fair-queue.ts'

/**
 * Spare abort controllers, one per connection. Making a signal costs more than all checks of a
 * request together, and nearly none is ever aborted. A controller goes back only if nobody listens
 * to it any more, and only to its own connection: should somebody have kept the signal, it still
 * tells the truth when that client goes away.
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

  giveBack(request: IncomingMessage, controller: AbortController): void {
    const { signal } = controller
    if (signal.aborted || getEventListeners(signal, 'abort').length > 0) return
    this.#spare.set(connectionOf(request), controller)
  }
}

/** An HTTP/2 request's `socket` is a stand-in of its own; its session is the connection. */
function connectionOf(request: IncomingMessage): object {
  if (!('stream' in request)) return request.socket
  const { stream } = request
  const session =
    typeof stream === 'object' && stream && 'session' in stream ? stream.session : null
  return typeof session === 'object' && session ? session : request
}

/** The socket of a request that asks to leave HTTP, and the bytes that came with it. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

const unread: RequestInfo = Object.freeze({
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

/** Who runs an exchange, and what all exchanges share. */
export interface ExchangeOwner {
  readonly clock: Clock
  readonly signals: SignalPool
  /** Answers with `error`, unless there is an answer already. */
  fail(exchange: Exchange, error: unknown): void
}

/** What is recorded, and never sent, for a client that left before there was an answer. */
export const clientLeftCode = 499

/** Why work is stopped when nobody is there to see its result. */
export const clientGone = new Error('the client has gone')

/** One request and its answer on their way through the pipeline, and what is known of them so far. */
export class Exchange implements AuditNotes {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upgrade: Upgrade | undefined
  /** Epoch milliseconds, for the audit. */
  readonly receivedAt: number
  /** Monotonic milliseconds, for durations. */
  readonly startedAt: number
  /** Taken now, because a closed HTTP/2 stream has no socket left to ask. */
  readonly sourceAddress: string
  auditId = ''
  info: RequestInfo = unread
  longRunning = false
  /** Who proved their identity, when they act as somebody else. */
  impersonator: Authentication | undefined
  /** Monotonic milliseconds. */
  identifiedAt = 0
  decision: Decision | undefined
  /** What the pipeline answered in place of a route. */
  failure: KubeStatus | undefined
  ticket: Ticket | undefined
  deadline: NodeJS.Timeout | undefined
  /** Nobody waits for the answer any more. */
  over = false
  /** Where `OpenExchanges` finds it. */
  place = -1
  readonly #owner: ExchangeOwner
  #hasLeftHttp = false
  #followsDrain = false
  #authentication: Authentication | undefined
  #controller: AbortController | undefined
  #abortedBecause: Error | undefined
  #whenOver: (() => void)[] | undefined
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

  /** The identity that acts, after impersonation. Asking before it is known is a bug, and refused. */
  get authentication(): Authentication {
    if (this.#authentication === undefined) throw new Error('the request is not authenticated yet')
    return this.#authentication
  }

  set authentication(value: Authentication) {
    this.#authentication = value
  }

  /** The same, for reporters that must cope with its absence. */
  get knownAuthentication(): Authentication | undefined {
    return this.#authentication
  }

  /** Aborts when the client has gone, the deadline has passed or the credential has died. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = this.#owner.signals.take(this.request)
      if (this.#abortedBecause) this.#controller.abort(this.#abortedBecause)
    }
    return this.#controller.signal
  }

  /** Whatever fails from now on fails because of that. */
  get aborted(): boolean {
    return this.#abortedBecause !== undefined
  }

  abort(why: Error): void {
    this.#abortedBecause ??= why
    this.#controller?.abort(this.#abortedBecause)
  }

  /** Adds to what the audit log says of the request; the first word on a subject counts, as in Kubernetes. */
  annotate(key: string, value: string): void {
    this.#annotations ??= new Map()
    if (!this.#annotations.has(key)) this.#annotations.set(key, value)
  }

  get annotations(): ReadonlyMap<string, string> | undefined {
    return this.#annotations
  }

  /** Has something done when the exchange is over. */
  onEnd(then: () => void): void {
    this.#whenOver ??= []
    this.#whenOver.push(then)
  }

  /** Has something done whenever the connection has sent what waited on it; only the first call counts. */
  onDrain(then: () => void): void {
    if (this.#followsDrain) return
    this.#followsDrain = true
    // On HTTP/1.1 a watch also writes to the socket itself, of which its response does not know.
    const source = this.request.httpVersionMajor === 1 ? this.request.socket : this.response
    source.on('drain', then)
    this.onEnd(() => source.off('drain', then))
  }

  /** To be called once, when nobody waits for the answer any more. */
  end(): void {
    this.over = true
    clearTimeout(this.deadline)
    for (const then of this.#whenOver ?? []) then()
    if (!this.response.writableEnded) this.abort(clientGone)
    // A stream's signal may have been handed to work that outlives it; it is not worth the risk.
    if (this.#controller && !this.longRunning)
      this.#owner.signals.giveBack(this.request, this.#controller)
  }

  /** Time is up: answers with `error` if nothing has been answered yet, and stops the work; cuts a client that does not read. */
  expire(error: Error): void {
    if (this.response.writableEnded) {
      this.cut(error)
      return
    }
    this.#owner.fail(this, error)
    this.abort(error)
  }

  /** Ends the connection without another word. */
  cut(why: Error): void {
    if (this.#hasLeftHttp) this.upgrade?.socket.destroy()
    // Without an error, HTTP/2 would end the stream as if it were complete.
    else this.response.destroy(why)
    // A pipelined response has no socket before its turn, and would be kept until then.
    if (this.response.socket === null) this.request.socket.destroy()
    // Only now: whoever hears of it in time ends the answer as if it were complete.
    this.abort(why)
  }

  /** Takes the socket out of HTTP's hands; false if it is closed already. */
  claimSocket(): boolean {
    if (this.over || this.upgrade === undefined || this.upgrade.socket.destroyed) return false
    this.response.detachSocket(this.upgrade.socket)
    this.#hasLeftHttp = true
    return true
  }

  /** What was answered, if the client was still there. */
  get code(): number {
    if (this.#hasLeftHttp) return 101
    return this.response.headersSent ? this.response.statusCode : clientLeftCode
  }
}

/** All exchanges that are under way, so that they can be ended. */
export class OpenExchanges {
  // Not a Set: the tables that it outgrows keep their former members, and one another, alive until
  // a full collection, and requests come and go by the thousand.
  readonly #open: Exchange[] = []
  readonly #waiting: (() => void)[] = []

  add(exchange: Exchange): void {
    exchange.place = this.#open.push(exchange) - 1
  }

  delete(exchange: Exchange): void {
    if (this.#open[exchange.place] !== exchange) return
    const last = this.#open.pop()
    if (last !== undefined && last !== exchange) {
      this.#open[exchange.place] = last
      last.place = exchange.place
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

  /** Asks long-running exchanges to come to an end. */
  endStreams(why: Error): void {
    // A copy, because whoever ends leaves.
    for (const exchange of this.#open.filter((each) => each.longRunning)) exchange.abort(why)
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

/** Tells an answer that is here from one that is to come, so that the former costs no tick. */
export function isPending<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise
}
