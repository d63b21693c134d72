import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type {
  RequestHeaders,
  TransportResponse,
  UpgradeOutcome,
} from '../credentials/transport/index.ts'
import { headerPairs } from '../http/index.ts'
import type {
  ResponseHead,
  ResponseListener,
  Upstream,
  UpstreamExchange,
  UpstreamRequest,
} from '../http/upstream/index.ts'
import type { ApiTransport } from './transport.ts'

/** The API server as an upstream: a transport that proves the user's identity, and repeats requests by itself. */
export class AuthenticatedUpstream implements Upstream {
  readonly #transport: ApiTransport
  readonly #relayed: boolean

  /** `relayed` if applications behind the API server may respond, whose 401 says nothing about our credential. */
  constructor(transport: ApiTransport, relayed: boolean) {
    this.#transport = transport
    this.#relayed = relayed
  }

  send(request: UpstreamRequest, listener: ResponseListener): UpstreamExchange {
    const exchange = new AuthenticatedExchange(request, listener)
    const sent = request.upgrade === undefined ? this.#send(exchange) : this.#upgrade(exchange)
    sent.catch((error: unknown) => exchange.fail(error))
    return exchange
  }

  /** The transport keeps its connections as long as its credential. */
  close(): void {}

  destroy(): void {
    this.#transport.destroy()
  }

  async #send(exchange: AuthenticatedExchange): Promise<void> {
    const { method, path, body } = exchange.request
    const response = await this.#transport.send({
      method,
      path,
      headers: headersOf(exchange.request),
      ...(body && { stream: body.stream }),
      relayed: this.#relayed,
      signal: exchange.signal,
    })
    exchange.receive(response)
  }

  async #upgrade(exchange: AuthenticatedExchange): Promise<void> {
    const { method, path, upgrade = '' } = exchange.request
    const outcome = await this.#transport.upgrade({
      method,
      path,
      headers: { ...headersOf(exchange.request), upgrade },
      relayed: this.#relayed,
      signal: exchange.signal,
    })
    exchange.switch(outcome)
  }
}

/** One request on a transport. */
class AuthenticatedExchange implements UpstreamExchange {
  readonly request: UpstreamRequest
  readonly #listener: ResponseListener
  readonly #abort = new AbortController()
  #body: Readable | undefined
  #isOver = false

  constructor(request: UpstreamRequest, listener: ResponseListener) {
    this.request = request
    this.#listener = listener
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  pause(): void {
    this.#body?.pause()
  }

  resume(): void {
    this.#body?.resume()
  }

  cancel(): void {
    if (!this.#isOver) this.#abort.abort()
  }

  fail(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener.failed(error instanceof Error ? error : new Error(String(error)), false)
  }

  switch({ upgraded, refused }: UpgradeOutcome): void {
    if (upgraded) {
      this.#isOver = true
      const head = headOf(101, upgraded.headers)
      this.#listener.upgraded?.(head, upgraded.socket)
    } else
      this.receive({ status: refused.statusCode ?? 502, headers: refused.headers, body: refused })
  }

  receive({ status, headers, body }: TransportResponse): void {
    const listener = this.#listener
    this.#body = body
    listener.head(headOf(status, headers, body))
    let hasBegun = false
    body.on('data', (chunk: Buffer) => {
      hasBegun = true
      listener.body(chunk)
      listener.settle()
    })
    body.once('end', () => {
      hasBegun = true
      this.#isOver = true
      listener.end(body instanceof IncomingMessage ? body.rawTrailers : [])
      listener.settle()
      // A server that has responded reads no more: what is left of the body would wait for it in vain.
      if (this.request.body && !this.request.body.stream.readableEnded) this.#abort.abort()
    })
    body.on('error', (error) => this.fail(error))
    body.once('close', () => this.fail(new Error('the response breaks off')))
    // A watch may be silent for long; but a body that is here already is sent with its head in one piece.
    setImmediate(() => {
      if (!hasBegun && !this.#isOver) listener.settle()
    })
  }
}

function headOf(status: number, headers: IncomingHttpHeaders, body?: Readable): ResponseHead {
  const length = headers['content-length']
  return {
    status,
    reason: (body instanceof IncomingMessage && body.statusMessage) || '',
    rawHeaders: flatten(headers),
    length: length === undefined ? undefined : Number(length),
    isChunked: headers['transfer-encoding'] !== undefined,
  }
}

function flatten(headers: IncomingHttpHeaders): string[] {
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') flat.push(name, value)
    else for (const each of value ?? []) flat.push(name, each)
  }
  return flat
}

/** By name, and with the framing of the body, which belongs to one connection only. */
function headersOf({ headers, body }: UpstreamRequest): RequestHeaders {
  const byName: Record<string, string | string[]> = Object.create(null)
  for (const [spelt, value] of headerPairs(headers)) {
    const name = spelt.toLowerCase()
    const known = byName[name]
    if (known === undefined) byName[name] = value
    else byName[name] = [...(typeof known === 'string' ? [known] : known), value]
  }
  if (!body) return byName
  if (body.length === undefined) byName['transfer-encoding'] = 'chunked'
  else byName['content-length'] = String(body.length)
  return byName
}
