import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Transform } from 'node:stream'
import { HeldChunks, onAbort } from '../../core/index.ts'
import { discardUnreadBody, hasBody } from '../body.ts'
import type { Meters } from '../copy-stream.ts'
import { withoutHeaders } from '../headers.ts'
import { announcedTrailers, keptTrailers, mayHaveTrailers } from '../trailers.ts'
import {
  ResponseBody,
  type ResponseHead,
  type ResponseListener,
  type Upstream,
  type UpstreamExchange,
  type UpstreamRequest,
} from '../upstream/index.ts'
import { addForwardingHeaders, writeHead } from './headers.ts'
import { sendRewritten } from './rewrite.ts'

/** In what those who forward differ. */
export interface ForwardPolicy {
  /** Headers for the client, flat, of a response or of a 101. What it throws is what `forward` rejects with. */
  responseHeaders(head: ResponseHead): string[]
  /** How the body is rewritten on its way to the client, if it is. May throw as well. */
  transform?(head: ResponseHead): (() => readonly Transform[]) | undefined
  /** What `forward` rejects with if the upstream did not respond, or not with HTTP. */
  failure(error: unknown): Error
}

/** Where and how a request is forwarded. */
export interface ForwardOptions {
  readonly upstream: Upstream
  /** Path and query at the upstream. */
  readonly path: string
  /** For the upstream, flat, with Host; nothing of the client's connection and none of `forwarderHeaders`. */
  readonly headers: string[]
  readonly policy: ForwardPolicy
  readonly meters?: Meters
  /** How long the rest of a body is read that the upstream does not want; absent if the server does that. */
  readonly lingerMs?: number
  /** Ends the request, and its response if that has begun. */
  readonly signal?: AbortSignal
}

/**
 * Sends a request to the upstream and the response back, each as it arrives. Resolves when the client has all of it or
 * is gone; rejects while nothing was sent to the client.
 */
export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    new Forwarding(request, response, options, [{ resolve, reject }]).start()
  })
}

/** Up to here a body is sent with its head as one text, which is one write less. */
const maxSmallBodyBytes = 16 * 1024
/** Methods that change nothing, so that sending them twice does no harm. */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** How a forwarded request ends. */
export interface Outcome {
  resolve(): void
  reject(error: Error): void
}

/** The protocol that is requested, and what is done with the connection that speaks it. */
export interface Upgrade {
  readonly protocol: string
  join(head: ResponseHead, connection: Duplex): void
}

/** One request on its way, and its response. */
export class Forwarding implements ResponseListener {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #options: ForwardOptions
  readonly #outcome: Outcome
  readonly #upgrade: Upgrade | undefined
  #state: 'waiting' | 'sending' | 'over' = 'waiting'
  #sent: UpstreamRequest | undefined
  #exchange: UpstreamExchange | undefined
  #forgetSignal: (() => void) | undefined
  #head: ResponseHead | undefined
  /** What has arrived since the last `settle`, which is nearly always one chunk. */
  #chunk: Buffer | undefined
  #chunks: HeldChunks | undefined
  /** Set at the end of the response. */
  #trailers: readonly string[] | undefined
  /** The names of the trailers that are forwarded. */
  #announced: readonly string[] = []
  #isFull = false
  #meterTimer: NodeJS.Timeout | undefined
  /** The body of a response that is rewritten. */
  #rewritten: ResponseBody | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: ForwardOptions,
    [outcome, upgrade]: readonly [Outcome, Upgrade?],
  ) {
    this.#request = request
    this.#response = response
    this.#options = options
    this.#outcome = outcome
    this.#upgrade = upgrade
  }

  start(): void {
    const { signal, path, headers, meters } = this.#options
    const { method = 'GET' } = this.#request
    if (this.#response.destroyed) {
      this.#onClose()
      return
    }
    this.#response.once('close', this.#onClose)
    addForwardingHeaders(headers, this.#request)
    const body = hasBody(this.#request) ? bodyOf(this.#request, meters) : undefined
    this.#sent = { method, path, headers, body, upgrade: this.#upgrade?.protocol }
    if (signal) this.#forgetSignal = onAbort(signal, this.#onAbort)
    if (signal?.aborted) this.#onAbort()
    else this.#send(this.#sent)
  }

  head(head: ResponseHead): void {
    this.#head = head
  }

  body(chunk: Buffer): void {
    if (this.#rewritten) this.#rewritten.receive(chunk)
    else if (this.#chunks) this.#chunks.push(chunk)
    else if (this.#chunk) {
      this.#chunks = new HeldChunks()
      this.#chunks.push(this.#chunk)
      this.#chunks.push(chunk)
      this.#chunk = undefined
    } else this.#chunk = chunk
  }

  end(trailers: readonly string[]): void {
    this.#trailers = trailers
    this.#rewritten?.finish()
  }

  /** Not before: what has come with the head is sent to the client in one piece with it. */
  settle(): void {
    if (this.#rewritten || !this.#head) return
    if (this.#state === 'waiting') this.#begin(this.#head)
    else if (this.#state === 'sending') {
      for (const chunk of this.#takeChunks()) this.#write(chunk)
      if (this.#trailers) this.#finish()
    }
  }

  upgraded(head: ResponseHead, connection: Duplex): void {
    if (this.#state === 'over' || !this.#upgrade) {
      connection.destroy()
      return
    }
    this.#response.off('close', this.#onClose)
    this.#end()
    this.#upgrade.join(head, connection)
  }

  failed(error: Error, isStale: boolean): void {
    if (this.#state === 'over') return
    // The response is complete: what came behind it is dropped.
    if (this.#trailers) this.settle()
    else if (this.#state === 'sending') this.#breakOff()
    else if (isStale && this.#sent && this.#mayRepeat()) this.#send(this.#sent)
    else this.#reject(this.#options.policy.failure(error))
  }

  #send(request: UpstreamRequest): void {
    try {
      this.#exchange = this.#options.upstream.send(request, this)
    } catch (error) {
      this.#reject(this.#options.policy.failure(error))
    }
  }

  /** A kept connection that was closed meanwhile says nothing about the upstream. Each attempt uses one of them up. */
  #mayRepeat(): boolean {
    return this.#sent?.body === undefined && safeMethods.has(this.#request.method ?? '')
  }

  #begin(head: ResponseHead): void {
    const response = this.#response
    // A refusal of ours was sent meanwhile.
    if (response.destroyed || response.headersSent) {
      this.#end()
      this.#exchange?.cancel()
      return
    }
    const chunks = this.#takeChunks()
    const hasBody = !isBodyless(this.#request, head)
    const decided = this.#decide(head, hasBody, chunks)
    if (!decided) return
    try {
      writeHead(response, head, decided.headers)
    } catch (error) {
      this.#reject(this.#options.policy.failure(error))
      return
    }
    this.#state = 'sending'
    this.#discardRest()
    if (decided.transform && hasBody) this.#rewrite(decided.transform(), chunks)
    else this.#sendBody(chunks)
  }

  /** What the policy makes of a response; undefined if it refuses that. */
  #decide(
    head: ResponseHead,
    hasBody: boolean,
    chunks: readonly Buffer[],
  ): { headers: string[]; transform: (() => readonly Transform[]) | undefined } | undefined {
    try {
      const transform = this.#options.policy.transform?.(head)
      return { transform, headers: this.#headersFor(head, { chunks, hasBody, transform }) }
    } catch (error) {
      this.#reject(error instanceof Error ? error : new Error(String(error)))
      return undefined
    }
  }

  /** Reads what the client still sends, which nobody wants: unread, it would keep the client from the response. */
  #discardRest(): void {
    const { lingerMs } = this.#options
    const response = this.#response
    if (lingerMs !== undefined && this.#sent?.body)
      response.once('finish', () => discardUnreadBody(this.#request, response, lingerMs))
    if (this.#upgrade) response.socket?.resume()
  }

  #headersFor(
    head: ResponseHead,
    body: {
      readonly chunks: readonly Buffer[]
      readonly hasBody: boolean
      readonly transform: unknown
    },
  ): string[] {
    const headers = this.#options.policy.responseHeaders(head)
    if (mayHaveTrailers(this.#request, head)) this.#announced = announcedTrailers(head.rawHeaders)
    if (this.#announced.length > 0) headers.push('Trailer', this.#announced.join(', '))
    // The length of a body that is rewritten is not known.
    if (body.transform) return withoutHeaders(headers, isContentLength)
    // What came in chunks may be here as a whole.
    const isLengthKnown = this.#trailers && body.hasBody && this.#announced.length === 0
    if (isLengthKnown && head.length === undefined)
      headers.push('Content-Length', String(bytesOf(body.chunks)))
    return headers
  }

  #sendBody(chunks: readonly Buffer[]): void {
    const response = this.#response
    const only = chunks[0]
    if (this.#trailers && only && chunks.length === 1 && only.length <= maxSmallBodyBytes) {
      this.#count(only.length)
      response.write(only.toString('latin1'), 'latin1')
      // A moment later: Node would write the end, which is nothing, as a second piece.
      queueMicrotask(() => this.#finish())
      return
    }
    response.on('drain', this.#onDrain)
    for (const chunk of chunks) this.#write(chunk)
    if (this.#trailers) this.#finish()
    // A client that waits for an event must know that the stream is open.
    else if (!only) response.flushHeaders()
  }

  #rewrite(transforms: readonly Transform[], chunks: readonly Buffer[]): void {
    if (!this.#exchange) return
    const source = new ResponseBody(this.#exchange)
    this.#rewritten = source
    for (const chunk of chunks) source.receive(chunk)
    if (this.#trailers) source.finish()
    sendRewritten(source, transforms, this.#response, {
      beforeEnd: () => this.#addTrailers(),
      breakOff: () => this.#breakOff(),
    })
  }

  #takeChunks(): readonly Buffer[] {
    const chunks = this.#chunks?.take() ?? (this.#chunk ? [this.#chunk] : [])
    this.#chunk = undefined
    this.#chunks = undefined
    return chunks
  }

  #write(chunk: Buffer): void {
    this.#count(chunk.length)
    this.#isFull = !this.#response.write(chunk)
    if (this.#isFull) this.#exchange?.pause()
  }

  #count(bytes: number): void {
    const waitMs = this.#options.meters?.toClient(bytes) ?? 0
    if (waitMs <= 0) return
    this.#exchange?.pause()
    clearTimeout(this.#meterTimer)
    this.#meterTimer = setTimeout(() => {
      this.#meterTimer = undefined
      if (this.#trailers) this.#finish()
      else if (!this.#isFull) this.#exchange?.resume()
    }, waitMs)
  }

  #finish(): void {
    if (this.#meterTimer !== undefined || this.#response.destroyed) return
    this.#addTrailers()
    this.#response.end()
  }

  #addTrailers(): void {
    if (this.#announced.length === 0) return
    this.#response.addTrailers(keptTrailers(this.#trailers ?? [], this.#announced))
  }

  /** What breaks off at the upstream breaks off at the client too. */
  #breakOff(): void {
    this.#exchange?.cancel()
    if (!this.#response.writableEnded)
      this.#response.destroy(new Error('the response of the upstream broke off'))
  }

  #reject(error: Error): void {
    this.#end()
    this.#exchange?.cancel()
    this.#outcome.reject(error)
  }

  #end(): void {
    this.#state = 'over'
    clearTimeout(this.#meterTimer)
    this.#forgetSignal?.()
  }

  readonly #onDrain = (): void => {
    this.#isFull = false
    if (this.#meterTimer === undefined) this.#exchange?.resume()
  }

  readonly #onAbort = (): void => {
    if (this.#state === 'waiting') this.#reject(this.#options.signal?.reason)
    else if (this.#state === 'sending') this.#breakOff()
  }

  readonly #onClose = (): void => {
    this.#end()
    this.#exchange?.cancel()
    this.#rewritten?.destroy()
    this.#outcome.resolve()
  }
}

const isBodyless = ({ method }: IncomingMessage, { status }: ResponseHead): boolean =>
  method === 'HEAD' || status === 204 || status === 304

const isContentLength = (name: string): boolean => name.toLowerCase() === 'content-length'

const bytesOf = (chunks: readonly Buffer[]): number =>
  chunks.reduce((sum, { length }) => sum + length, 0)

function bodyOf(request: IncomingMessage, meters: Meters | undefined): UpstreamRequest['body'] {
  const length = request.headers['content-length']
  return {
    stream: request,
    length: length === undefined ? undefined : Number(length),
    meter: meters?.toUpstream,
  }
}
