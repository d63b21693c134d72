import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError, type Clock } from '../../core/index.ts'
import { forgetBody, onClientWait } from '../../http/index.ts'
import { checkOrigin, checkProvenOrigin } from './check-origin.ts'
import { clientGone, Exchange, type ExchangeOwner, OpenExchanges, SignalPool } from './exchange.ts'
import { answerFailure } from './failure.ts'
import { minWatchedBytes } from './limits.ts'
import { signAnswer } from './sign-response.ts'
import {
  accept,
  admit,
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
  startDeadline,
} from './steps.ts'
import type { PipelineParts, Step } from './types.ts'

const notRead = new Error('the client does not read its response')

const shuttingDown = (): ApiError =>
  new ApiError('ServiceUnavailable', 'the server is shutting down', {
    details: { retryAfterSeconds: 1 },
  })

/** Takes every request through the steps, and sees it off when its connection is done with it. */
export class PipelineRunner implements ExchangeOwner {
  readonly clock: Clock
  readonly signals = new SignalPool()
  readonly #steps: readonly Step[]
  readonly #parts: PipelineParts
  readonly #open = new OpenExchanges()
  #draining = false

  constructor(steps: readonly Step[], parts: PipelineParts) {
    this.#steps = steps
    this.#parts = parts
    this.clock = parts.clock
  }

  /** For the `request` event of an HTTP/1.1 or HTTP/2 server. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = new Exchange(request, response, this)
    response.on('error', this.#onError)
    response.on('close', () => this.#end(exchange))
    onClientWait(response, () => this.#waits(exchange))
    this.#begin(exchange)
  }

  /** For the `upgrade` event of an HTTP/1.1 server. */
  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!(socket instanceof Socket)) {
      socket.destroy()
      return
    }
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    const exchange = new Exchange(request, response, this, { socket, head })
    socket.on('error', this.#onError)
    socket.on('close', () => this.#end(exchange))
    response.on('finish', () => socket.destroySoon())
    this.#begin(exchange)
  }

  /** Ends streams, closes connections after their answers; resolves when nothing is under way. */
  drain(): Promise<void> {
    this.#draining = true
    this.#open.endStreams(shuttingDown())
    return this.#open.idle()
  }

  /** Watches and streams that are open. */
  get longRunning(): number {
    return this.#open.longRunning()
  }

  /** Answers with `error`, unless there is an answer already. */
  fail(exchange: Exchange, error: unknown): void {
    if (exchange.failure !== undefined || exchange.over) return
    try {
      answerFailure(exchange, error, this.#parts.log)
      this.#worked(exchange)
    } catch (err) {
      // An HTTP/2 stream that is gone already takes no header.
      this.#onError(err)
      exchange.cut(clientGone)
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
      for (let index = from; index < this.#steps.length && !exchange.over; index++) {
        const waiting = this.#steps[index]?.(exchange, this.#parts)
        if (waiting === undefined) continue
        waiting.then(
          () => this.#run(exchange, index + 1),
          (error: unknown) => this.fail(exchange, error),
        )
        return
      }
      if (exchange.response.writableEnded) this.#worked(exchange)
    } catch (error) {
      this.fail(exchange, error)
    }
  }

  /** A stream keeps its permit while its client reads; what is unread counts until it is read. */
  #waits(exchange: Exchange): void {
    const { longRunning, response, ticket } = exchange
    if (!longRunning || response.writableEnded) return this.#worked(exchange)
    if (exchange.over || response.destroyed || ticket === undefined) return
    const unread = response.writableLength
    if (unread === 0) return this.#parts.fairness.read(ticket)
    exchange.onDrain(() => this.#waits(exchange))
    this.#parts.fairness.unread(ticket, unread)
  }

  /** What remains is the client's time: the permit is given back, and its unread bytes are counted. */
  #worked(exchange: Exchange): void {
    const { ticket, response, request } = exchange
    if (exchange.over || (exchange.longRunning && !response.writableEnded)) return
    const { requestTimeoutMs } = this.#parts
    exchange.deadline ??= setTimeout(() => exchange.cut(notRead), requestTimeoutMs)
    if (ticket === undefined) return
    if (ticket.held > 0) forgetBody(request)
    const unread = response.writableLength
    this.#parts.fairness.worked(ticket, unread)
    if (unread <= minWatchedBytes || response.listenerCount('timeout') > 0) return
    response.setTimeout(this.#parts.limits.maxWriteStallMs, () => exchange.cut(notRead))
  }

  #end(exchange: Exchange): void {
    if (exchange.over) return
    this.#open.delete(exchange)
    if (exchange.ticket) this.#parts.fairness.release(exchange.ticket)
    exchange.end()
    try {
      this.#parts.audit.complete(exchange)
      this.#parts.metrics.complete(exchange)
    } catch (err) {
      this.#parts.log.error({ err, auditId: exchange.auditId }, 'request could not be recorded')
    }
  }

  // A handler that writes after the end must not bring the process down.
  readonly #onError = (err: unknown): void => {
    this.#parts.log.debug({ err }, 'answer could not be written')
  }
}

/**
 * What happens to a request, in this order. A step that throws ends it with a Status; the audit
 * ends, and what it holds in memory is given back, when the connection is done.
 */
const steps: readonly Step[] = [
  accept, //           audit id and standard headers
  checkLimits, //      URL and header sizes                      414, 431
  checkHeaders, //     no header that says two things            400
  readRequestInfo, //  what it means; the only parse of the URL  400
  beginAudit, //       from here on the stages are recorded
  checkOrigin, //      no writes of pages of other origins       403
  startDeadline, //    all but streams are over by then          504
  authenticate, //     who is it, and not revoked                401
  checkProvenOrigin, // no upgrades of them, either              403
  signAnswer, //       whoever asked by a signed request gets a signed answer
  impersonate, //      acting as somebody else                   403
  checkCpu, //         share of CPU time                         429
  bindToCredential, // a stream ends when its credential does
  receive, //          the whole body, which streams read later  413, 429, 504
  admit, //            in-flight limits per user and in total    429
  confirmIdentity, //  not revoked while it waited               401, 403
  authorize, //        scope of the credential, then rights      403
  route, //            resources, plain paths, upgrades          404, 405 and the answer
]

/** Puts the steps together with the policy that they apply. */
export const createPipeline = (parts: PipelineParts): PipelineRunner =>
  new PipelineRunner(steps, parts)
