import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Authentication, Clock, Decision, KubeStatus } from '../core/index.ts'
import type { Ticket } from './fair-queue.ts'
import type { ParsedRequest } from './request-info.ts'

/** The socket of a request that asks to leave HTTP, and the bytes that came with it. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

const unread: ParsedRequest = Object.freeze({
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

/** Who has to see to it when the time of an exchange is up. */
export interface ExchangeOwner {
  fail(exchange: Exchange, error: unknown): void
}

/** One request and its answer on their way through the pipeline, and what is known of them so far. */
export class Exchange {
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
  info: ParsedRequest = unread
  longRunning = false
  /** Who proved their identity, when they act as somebody else. */
  impersonator: Authentication | undefined
  decision: Decision | undefined
  /** What the pipeline answered in place of a route. */
  failure: KubeStatus | undefined
  ticket: Ticket | undefined
  deadline: NodeJS.Timeout | undefined
  /** Nobody waits for the answer any more. */
  over = false
  readonly #owner: ExchangeOwner
  #hasLeftHttp = false
  #authentication: Authentication | undefined
  #controller: AbortController | undefined
  #abortedBecause: Error | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    context: { readonly clock: Clock; readonly owner: ExchangeOwner },
    upgrade?: Upgrade,
  ) {
    this.request = request
    this.response = response
    this.upgrade = upgrade
    this.#owner = context.owner
    this.receivedAt = context.clock.now()
    this.startedAt = context.clock.monotonic()
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
      this.#controller = new AbortController()
      if (this.#abortedBecause) this.#controller.abort(this.#abortedBecause)
    }
    return this.#controller.signal
  }

  abort(why: Error): void {
    this.#abortedBecause ??= why
    this.#controller?.abort(this.#abortedBecause)
  }

  /** Time is up: answers with `error` if nothing has been answered yet, and stops the work. */
  expire(error: Error): void {
    this.#owner.fail(this, error)
    this.abort(error)
  }

  /** Ends the connection without another word. */
  cut(why: Error): void {
    this.abort(why)
    if (this.#hasLeftHttp) this.upgrade?.socket.destroy()
    else this.response.destroy()
  }

  /** Takes the socket out of HTTP's hands; false if it is closed already. */
  claimSocket(): boolean {
    if (this.over || this.upgrade === undefined || this.upgrade.socket.destroyed) return false
    this.response.detachSocket(this.upgrade.socket)
    this.#hasLeftHttp = true
    return true
  }

  /** What was answered; 499 for a client that left before there was an answer. */
  get code(): number {
    if (this.#hasLeftHttp) return 101
    return this.response.headersSent ? this.response.statusCode : 499
  }
}
