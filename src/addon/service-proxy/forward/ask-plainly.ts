import { HeldChunks } from '../../../core/index.ts'
import {
  type AnswerListener,
  type ResponseHead,
  requestHead,
  type WireExchange,
} from '../../wire/index.ts'
import { type BackendAnswer, WireBody } from './backend-answer.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { hasBody, isSafe } from './request-headers.ts'

/**
 * Asks a backend without Node's client, on which a request that has no body would spend most of its time. Returns
 * nothing for a request that it cannot send; rejects while nothing has been answered.
 */
export function askPlainly(forwarding: Forwarding): Promise<BackendAnswer> | undefined {
  const { request, path, headers } = forwarding
  if (hasBody(request)) return undefined
  // As Node's client says it: a backend of HTTP/1.0 would otherwise end every connection.
  const head = requestHead(request.method ?? 'GET', path, [...headers, 'Connection', 'keep-alive'])
  if (head === undefined) return undefined
  return new Promise((resolve, reject) => new PlainAsking(forwarding, head, { resolve, reject }))
}

interface Outcome {
  resolve(answer: BackendAnswer): void
  reject(error: unknown): void
}

class PlainAsking implements AnswerListener {
  readonly #forwarding: Forwarding
  readonly #request: string
  readonly #outcome: Outcome
  #exchange: WireExchange
  #head: ResponseHead | undefined
  /** What has come with the head. */
  readonly #first = new HeldChunks()
  /** What comes later. */
  #rest: WireBody | undefined
  #trailers: readonly string[] | undefined
  #isTold = false

  constructor(forwarding: Forwarding, request: string, outcome: Outcome) {
    const { signal } = forwarding
    this.#forwarding = forwarding
    this.#request = request
    this.#outcome = outcome
    this.#exchange = this.#ask()
    signal.addEventListener('abort', this.#abort, { once: true })
    if (signal.aborted) this.#abort()
  }

  head(head: ResponseHead): void {
    this.#head = head
  }

  body(chunk: Buffer): void {
    if (this.#rest) this.#rest.receive(chunk)
    else this.#first.push(chunk)
  }

  end(trailers: readonly string[]): void {
    this.#trailers = trailers
    this.#rest?.finish()
  }

  /** Not before: what has come with the head goes to the client in one piece with it. */
  settle(): void {
    const head = this.#head
    if (head && !this.#isTold) this.#tell(() => this.#outcome.resolve(this.#answer(head)))
  }

  failed(error: Error, isStale: boolean): void {
    const { request, signal } = this.#forwarding
    // What a backend says behind its answer is nobody's.
    if (this.#trailers) this.settle()
    else if (this.#isTold) this.#rest?.destroy()
    // A kept connection that was closed meanwhile says nothing about its backend.
    else if (isStale && isSafe(request) && !signal.aborted) this.#exchange = this.#ask()
    else this.#tell(() => this.#outcome.reject(unreachable(error)))
  }

  #ask(): WireExchange {
    const { connections, backend, request } = this.#forwarding
    return connections.wireFor(backend).ask(this.#request, request.method === 'HEAD', this)
  }

  #answer({ status, rawHeaders, isChunked }: ResponseHead): BackendAnswer {
    const trailers = (): readonly string[] => this.#trailers ?? []
    return { status, rawHeaders, isChunked, body: this.#body(), trailers }
  }

  #body(): Buffer | WireBody {
    const first = this.#first.take()
    const [only = Buffer.alloc(0), ...more] = first
    if (this.#trailers) return more.length === 0 ? only : Buffer.concat(first)
    this.#rest = new WireBody(this.#exchange)
    for (const chunk of first) this.#rest.receive(chunk)
    return this.#rest
  }

  /** While nothing has been told; whoever reads the answer looks at the signal then. */
  readonly #abort = (): void => {
    this.#tell(() => this.#outcome.reject(this.#forwarding.signal.reason))
    this.#exchange.cancel()
  }

  #tell(what: () => void): void {
    if (this.#isTold) return
    this.#isTold = true
    this.#forwarding.signal.removeEventListener('abort', this.#abort)
    what()
  }
}
