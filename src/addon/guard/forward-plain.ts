import type { IncomingMessage, ServerResponse } from 'node:http'
import { announcedTrailers, keptTrailers, mayHaveTrailers } from '../../http/index.ts'
import type { AnswerListener, ResponseHead, WireExchange } from '../wire/index.ts'
import { answerHeaders } from './answer-headers.ts'
import { outgoing } from './outgoing.ts'
import type { GuardedRequest } from './read-request.ts'
import { type Upstream, unanswered } from './upstream.ts'

/** One request of a known user on its way to the add-on and back. */
export interface Forwarding {
  readonly upstream: Upstream
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly read: GuardedRequest
  /** The headers that state who the user is. */
  readonly identity: readonly string[]
  /** How long a body that nobody wants is still read. */
  readonly lingerMs: number
}

/** Up to here a body goes out with its head as one text, which is one write less. */
const smallBody = 16 * 1024

/** Forwards a request without a body; rejects with GuardRefused while nothing is answered. */
export function forwardPlain(forwarding: Forwarding): Promise<void> {
  return new Promise((resolve, reject) => new PlainForward(forwarding, { resolve, reject }).ask())
}

class PlainForward implements AnswerListener {
  readonly #forwarding: Forwarding
  readonly #headers: string[]
  readonly #promise: { resolve(): void; reject(error: Error): void }
  #exchange: WireExchange | undefined
  #head: ResponseHead | undefined
  /** What has come before anything was sent. */
  #first: Buffer[] = []
  #hasEnded = false
  /** The names of trailers that are passed on, and then what they say. */
  #announced: readonly string[] = []
  #trailers: readonly string[] = []
  #isSent = false
  #attempts = 0

  constructor(forwarding: Forwarding, promise: { resolve(): void; reject(error: Error): void }) {
    const { request, response, read, identity } = forwarding
    this.#forwarding = forwarding
    this.#promise = promise
    this.#headers = outgoing(request, read, identity)
    response.once('close', () => this.#exchange?.cancel())
  }

  ask(): void {
    const { upstream, request } = this.#forwarding
    const { method = 'GET', url = '/' } = request
    this.#attempts += 1
    this.#exchange = upstream.ask({ method, path: url, headers: this.#headers }, this)
  }

  head(head: ResponseHead): void {
    this.#head = head
  }

  body(chunk: Buffer): void {
    if (!this.#isSent) this.#first.push(chunk)
    else if (!this.#forwarding.response.write(chunk)) this.#exchange?.hold()
  }

  end(trailers: readonly string[]): void {
    this.#hasEnded = true
    this.#trailers = trailers
    if (this.#isSent) this.#finish()
  }

  settle(): void {
    if (this.#isSent || !this.#head) return
    try {
      this.#send(this.#head)
    } catch (error) {
      // Nobody above would catch it, and what an add-on answers must not end the guard.
      this.#exchange?.cancel()
      this.#promise.reject(unanswered(error))
    }
  }

  failed(error: Error, isStale: boolean): void {
    const { request, response } = this.#forwarding
    const isSafe = request.method === 'GET' || request.method === 'HEAD'
    if (this.#isSent) response.destroy()
    else if (isStale && isSafe && this.#attempts === 1 && !response.destroyed) this.ask()
    else this.#promise.reject(unanswered(error))
  }

  #send(head: ResponseHead): void {
    const { response } = this.#forwarding
    this.#isSent = true
    if (response.destroyed || response.headersSent) {
      this.#exchange?.cancel()
      return
    }
    const [only = Buffer.alloc(0), ...more] = this.#first
    const body = more.length === 0 ? only : Buffer.concat(this.#first)
    this.#first = []
    response.writeHead(head.status, head.reason, this.#headersFor(head, body))
    if (!this.#hasEnded) this.#sendOn(body)
    else if (body.length > 0 && body.length <= smallBody) this.#sendSmall(body)
    else this.#finish(body)
    this.#promise.resolve()
  }

  #headersFor(head: ResponseHead, body: Buffer): string[] {
    const headers = answerHeaders(head.rawHeaders)
    this.#announced = this.#announcedBy(head)
    if (this.#announced.length > 0) headers.push('Trailer', this.#announced.join(', '))
    else if (this.#hasEnded && body.length > 0 && head.length === undefined)
      headers.push('Content-Length', String(body.length))
    return headers
  }

  #announcedBy(head: ResponseHead): readonly string[] {
    const mayHave = head.hasTrailers && mayHaveTrailers(this.#forwarding.request, head)
    return mayHave ? announcedTrailers(head.rawHeaders) : []
  }

  #finish(body?: Buffer): void {
    const { response } = this.#forwarding
    if (this.#announced.length > 0)
      response.addTrailers(keptTrailers(this.#trailers, this.#announced))
    response.end(body)
  }

  /** Head and body as one text. Ended a moment later, because Node would write the end, which is nothing, as a second piece. */
  #sendSmall(body: Buffer): void {
    const { response } = this.#forwarding
    response.write(body.toString('latin1'), 'latin1')
    queueMicrotask(() => this.#finish())
  }

  #sendOn(body: Buffer): void {
    const { response } = this.#forwarding
    response.on('drain', () => this.#exchange?.resume())
    // An event stream may be silent for long, and its client must know that it is open.
    if (body.length === 0) response.flushHeaders()
    else if (!response.write(body)) this.#exchange?.hold()
  }
}
