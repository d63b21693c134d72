import { setMaxListeners } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { isRecord } from '../core/index.ts'
import { AnswerInvalid, answerError, connectionFailed, RequestTimedOut } from './errors.ts'
import type { RequestHeaders, Transport, TransportResponse } from './transport.ts'

/**
 * An abort signal that follows another one and a timer, and lets go of both when released.
 * AbortSignal.any would hold on to long-lived signals for as long as they live.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #follow = () => this.#controller.abort(this.#outer.reason)
  #timer: NodeJS.Timeout | undefined

  constructor(outer: AbortSignal) {
    this.#outer = outer
    setMaxListeners(0, outer) // one signal may well end hundreds of requests
    if (outer.aborted) this.#follow()
    else outer.addEventListener('abort', this.#follow, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Aborts after `ms` with the error that is made then, in place of any earlier limit. */
  limit(ms: number, error: () => Error): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#controller.abort(error()), ms)
  }

  release(): void {
    clearTimeout(this.#timer)
    this.#outer.removeEventListener('abort', this.#follow)
  }
}

const maxErrorBytes = 1024 * 1024

/** What all requests of a client have in common. */
export interface ExchangeContext {
  readonly transport: Transport
  /** From the sending of a request to the last byte of its answer. */
  readonly timeoutMs: number
  /** Of one answer, or of one event of a watch. */
  readonly maxAnswerBytes: number
  readonly userAgent: string
}

/** A request as the API sees it. */
export interface ApiRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query?: URLSearchParams
  readonly headers?: RequestHeaders
  /** Sent as JSON, unless `headers` names another content type of JSON's family. */
  readonly body?: unknown
}

/** A whole answer that reports success. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Sends a request and returns the head of a good answer; throws an ApiError for any other. */
export async function openAnswer(
  context: ExchangeContext,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<TransportResponse> {
  const query = request.query?.toString()
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body))
  const response = await context.transport.send({
    method: request.method,
    path: query ? `${request.path}?${query}` : request.path,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': context.userAgent,
      ...(body && { 'content-type': 'application/json', 'content-length': String(body.length) }),
      ...request.headers,
    },
    ...(body && { body }),
    signal,
  })
  if (response.status >= 200 && response.status < 300) return response
  if (response.status >= 400) {
    const text = await readBody(context, response.body, maxErrorBytes, signal)
    throw answerError(response.status, response.headers, text)
  }
  response.body.destroy()
  throw new AnswerInvalid(
    `${context.transport.server} answered ${response.status}; redirects are not followed`,
  )
}

/** Sends a request and reads its answer within the client's time and size limits. */
export async function exchange(
  context: ExchangeContext,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<Answer> {
  const { transport, timeoutMs, maxAnswerBytes } = context
  const deadline = new Deadline(signal)
  deadline.limit(timeoutMs, () => timedOut(transport, timeoutMs))
  try {
    const { status, headers, body } = await openAnswer(context, request, deadline.signal)
    const bytes = await readBody(context, body, maxAnswerBytes, deadline.signal)
    if (bytes) return { status, headers, body: bytes }
    throw new AnswerInvalid(
      `an answer of ${transport.server} is larger than ${maxAnswerBytes} bytes`,
    )
  } finally {
    deadline.release()
  }
}

/** As `exchange`, for answers that are one JSON object. */
export async function exchangeJson(
  context: ExchangeContext,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { body } = await exchange(context, request, signal)
  return parseRecord(body, context.transport.server)
}

/** A JSON object from the server's bytes. */
export function parseRecord(bytes: Buffer, server: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    // The parser's message quotes its input, which may be a Secret.
    const detail = cause instanceof Error ? cause.name : 'unknown'
    throw new AnswerInvalid(`an answer of ${server} is not JSON`, { detail })
  }
  if (isRecord(value)) return value
  throw new AnswerInvalid(`an answer of ${server} is not a JSON object`)
}

/** The error of a request that took longer than it may. */
export const timedOut = (transport: Transport, ms: number): RequestTimedOut =>
  new RequestTimedOut(`no answer from ${transport.server} within ${ms / 1000} s`)

/** All bytes of a body; `undefined`, and the body destroyed, when there are more than `maxBytes`. */
async function readBody(
  context: ExchangeContext,
  body: Readable,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  try {
    return await collect(body, maxBytes)
  } catch (error) {
    signal.throwIfAborted()
    throw connectionFailed(context.transport.server, error)
  }
}

/** By events: an iterator costs several times as much, which short requests feel. */
function collect(body: Readable, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const cut = (): void => reject(body.errored ?? new Error('the answer broke off'))
    if (body.destroyed) cut()
    body.on('data', (chunk: Buffer | string) => {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk)
      size += bytes.length
      chunks.push(bytes)
      if (size <= maxBytes) return
      resolve(undefined)
      body.destroy()
    })
    body.once('end', () => {
      const [first] = chunks
      resolve(first && chunks.length === 1 ? first : Buffer.concat(chunks, size))
    })
    body.on('error', reject).once('close', cut)
  })
}
