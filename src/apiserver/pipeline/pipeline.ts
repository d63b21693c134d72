import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError, type Authentication, type Clock } from '../../core/index.ts'
import { EventfulServerResponse, forgetBody, onUnread } from '../../http/index.ts'
import { minWatchedBytes } from '../limits.ts'
import { checkOrigin, checkProvenOrigin } from './check-origin.ts'
import {
  clientDisconnected,
  Exchange,
  type ExchangeOwner,
  OpenExchanges,
  SignalPool,
} from './exchange.ts'
import { sendFailure } from './failure.ts'
import {
  accept,
  acquirePermit,
  authenticate,
  authorize,
  beginAudit,
  bindToCredential,
  checkCpu,
  checkHeaders,
  checkLimits,
  confirmIdentity,
  impersonate,
  readRequestInfo,
  receive,
  route,
  signResponse,
  startDeadline,
} from './steps.ts'
import type { PipelineDeps, Step } from './types.ts'

const notRead = new Error('the client does not read its response')

const shuttingDown = (): ApiError =>
  new ApiError('ServiceUnavailable', 'the server is shutting down', {
    details: { retryAfterSeconds: 1 },
  })

/** Runs the steps for every request, and records it when its connection is done with it. */
export class Pipeline implements ExchangeOwner {
  readonly clock: Clock
  readonly signals = new SignalPool()
  readonly #deps: PipelineDeps
  readonly #open = new OpenExchanges()
  #draining = false

  constructor(deps: PipelineDeps) {
    this.#deps = deps
    this.clock = deps.clock
    deps.revocations.onMoreRevoked(() => {
      for (const exchange of this.#open.requests()) this.#stopIfRevoked(exchange)
    })
  }

  /** For the `request` event of an HTTP/1.1 or HTTP/2 server. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = new Exchange(request, response, this)
    response.on('error', this.#onError)
    response.on('close', () => this.#end(exchange))
    onUnread(response, () => this.#waitForClient(exchange))
    this.#begin(exchange)
  }

  /** For the `upgrade` event of an HTTP/1.1 server. */
  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!(socket instanceof Socket)) {
      socket.destroy()
      return
    }
    const response = new EventfulServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    const exchange = new Exchange(request, response, this, { socket, head })
    socket.on('error', this.#onError)
    socket.on('close', () => this.#end(exchange))
    response.on('finish', () => socket.destroySoon())
    this.#begin(exchange)
  }

  /** Ends streams, closes connections after their responses; resolves when nothing is under way. */
  drain(): Promise<void> {
    this.#draining = true
    this.#open.endStreams(shuttingDown())
    return this.#open.idle()
  }

  /** Watches and streams that are open. */
  get longRunning(): number {
    return this.#open.longRunning()
  }

  /** Authenticates a request again, for a stream that lives on. */
  async reauthenticate(
    request: IncomingMessage,
    signal: AbortSignal,
  ): Promise<Authentication | undefined> {
    const { authenticator, revocations } = this.#deps
    const found = await authenticator.authenticate(request, signal)
    if (found) revocations.check(found)
    return found
  }

  /** Responds with `error`, unless there is a response already. */
  fail(exchange: Exchange, error: unknown): void {
    if (exchange.failure !== undefined || exchange.over) return
    try {
      sendFailure(exchange, error, this.#deps.log)
      this.#completed(exchange)
    } catch (err) {
      // An HTTP/2 stream that is closed already accepts no header.
      this.#onError(err)
      exchange.disconnect(clientDisconnected)
    }
  }

  /** A request that is being worked on ends as well: it may wait for a worker thread. Streams are bound to their credential. */
  #stopIfRevoked(exchange: Exchange): void {
    const { knownAuthentication, impersonator = knownAuthentication } = exchange
    try {
      if (impersonator) this.#deps.revocations.check(impersonator)
    } catch (error) {
      exchange.expire(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #begin(exchange: Exchange): void {
    this.#open.add(exchange)
    if (this.#draining && exchange.request.httpVersionMajor === 1) {
      exchange.response.setHeader('Connection', 'close')
    }
    this.#run(exchange, 0)
  }

  #run(exchange: Exchange, from: number): void {
    try {
      for (let index = from; index < steps.length && !exchange.over; index++) {
        const waiting = steps[index]?.(exchange, this.#deps)
        if (waiting === undefined) continue
        waiting.then(
          () => this.#run(exchange, index + 1),
          (error: unknown) => this.fail(exchange, error),
        )
        return
      }
      if (exchange.response.writableEnded) this.#completed(exchange)
    } catch (error) {
      this.fail(exchange, error)
    }
  }

  /** A stream keeps its permit while its client reads; what is unread counts until it is read. */
  #waitForClient(exchange: Exchange): void {
    const { longRunning, response, ticket } = exchange
    if (!longRunning || response.writableEnded) return this.#completed(exchange)
    if (exchange.over || response.destroyed || ticket === undefined) return
    const unread = response.writableLength
    if (unread === 0) return this.#deps.fairness.read(ticket)
    exchange.onDrain(() => this.#waitForClient(exchange))
    this.#deps.fairness.unread(ticket, unread)
  }

  /** What remains is the client's time: the permit is released, and its unread bytes are counted. */
  #completed(exchange: Exchange): void {
    const { ticket, response, request } = exchange
    if (exchange.over || (exchange.longRunning && !response.writableEnded)) return
    const { requestTimeoutMs } = this.#deps
    exchange.deadline ??= setTimeout(() => exchange.disconnect(notRead), requestTimeoutMs)
    if (ticket === undefined) return
    if (ticket.held > 0) forgetBody(request)
    const unread = response.writableLength
    this.#deps.fairness.completed(ticket, unread)
    if (unread <= minWatchedBytes || response.listenerCount('timeout') > 0) return
    response.setTimeout(this.#deps.limits.maxWriteStallMs, () => exchange.disconnect(notRead))
  }

  #end(exchange: Exchange): void {
    if (exchange.over) return
    this.#open.delete(exchange)
    if (exchange.ticket) this.#deps.fairness.release(exchange.ticket)
    exchange.end()
    try {
      this.#deps.audit.complete(exchange)
      this.#deps.metrics.complete(exchange)
    } catch (err) {
      this.#deps.log.error({ err, auditId: exchange.auditId }, 'cannot record the request')
    }
  }

  // A handler that writes after the end must not crash the process.
  readonly #onError = (err: unknown): void => {
    this.#deps.log.debug({ err }, 'cannot write the response')
  }
}

/**
 * What happens to a request, in this order. A step that throws ends it with a Status; the audit
 * ends, and the memory that it holds is released, when the connection is done with it.
 */
const steps: readonly Step[] = [
  accept, //            audit id and standard headers
  checkLimits, //       URL and header sizes                       414, 431
  checkHeaders, //      no ambiguous header                        400
  readRequestInfo, //   the only parse of method and URL           400
  beginAudit, //        from here on the stages are recorded
  checkOrigin, //       no writes by pages of other origins        403
  startDeadline, //     for all requests but streams               504
  authenticate, //      identity of a credential that is not revoked 401
  checkProvenOrigin, // no upgrades by pages of other origins      403
  signResponse, //      signed requests get signed responses
  impersonate, //       identity of the Impersonate-* headers      403
  checkCpu, //          share of CPU time                          429
  bindToCredential, //  a stream ends when its credential does
  receive, //           the whole body, which streams read later   413, 429, 504
  acquirePermit, //     in-flight limits per user and in total     429
  confirmIdentity, //   not revoked while it waited                401, 403
  authorize, //         scope of the credential, then permissions  403
  route, //             the backend: resources, proxies, plain paths 404, 405 and the response
]

/** The request pipeline with the policy that its steps apply. */
export const createPipeline = (deps: PipelineDeps): Pipeline => new Pipeline(deps)
