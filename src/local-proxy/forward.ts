import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { defaultServerLimits, discardUnreadBody } from '../http/index.ts'
import type { HostName } from './addon-origin.ts'
import { answerHeaders, type HeaderRewriting, type ResponsePlace } from './answer-headers.ts'
import { AnswerUnusable } from './answer-unusable.ts'
import type { HeaderRecord, Upstream, UpstreamResponse } from './proxy-upstream.ts'
import { type RequestRewriting, requestHeaders } from './request-headers.ts'

/** Where a request goes, and where its response is shown. */
export interface ForwardPlan {
  readonly kind: 'forward'
  /** Path and query at the API server. */
  readonly path: string
  readonly host: HostName
  readonly place: ResponsePlace
}

/** What every request is forwarded with. */
export interface ForwardParts extends HeaderRewriting, RequestRewriting {
  readonly upstream: Upstream
}

/** Sends a request on and its answer back, each as it arrives; rejects while nothing has been answered. */
export async function forward(
  parts: ForwardParts,
  plan: ForwardPlan,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const { method = 'GET' } = request
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  const answer = await parts.upstream.send({
    method,
    path: plan.path,
    headers: framed(request, requestHeaders(request, plan, parts)),
    ...(hasBody(request) && { stream: request }),
    ...(plan.place.kind !== 'api' && { relayed: true }),
    signal: gone.signal,
  })
  // A server that has said all wants no more: what is left of the body would wait for it in vain.
  answer.body.once('end', () => {
    if (!request.complete) gone.abort()
  })
  const { lingerMs } = defaultServerLimits
  response.once('finish', () => discardUnreadBody(request, response, lingerMs))
  writeHead(response, answer, () => answerHeaders(answer.headers, plan.place, parts))
  // A watch may be silent for long; its client must know at once that it is open.
  response.flushHeaders()
  await copy(answer.body, response)
}

/** An answer whose head cannot be sent on must not keep its connection. */
function writeHead(
  response: ServerResponse,
  answer: UpstreamResponse,
  headers: () => string[],
): void {
  try {
    response.writeHead(answer.status, headers())
  } catch (cause) {
    answer.body.on('error', () => {}).destroy()
    throw new AnswerUnusable('the head of the answer is not HTTP', { cause })
  }
}

/**
 * Ends when the client has all of it or is gone. By hand, since `pipeline` would make and abort a signal for every
 * answer and `pipe` would listen for six events more.
 */
function copy(body: Readable, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve)
    response.on('drain', () => body.resume())
    let begun = false
    body.on('data', (chunk: Buffer) => {
      begun = true
      if (!response.write(chunk)) body.pause()
    })
    body.once('end', () => {
      begun = true
      response.end()
    })
    body.on('error', () => response.destroy())
    // What breaks off breaks off at the client too.
    body.once('close', () => {
      if (!body.readableEnded) response.destroy()
    })
    // A watch may be silent for long, and its client must know that it is open; but a body that is here already
    // goes with its head in one piece.
    setImmediate(() => {
      if (!begun && !response.destroyed) response.flushHeaders()
    })
  })
}

/** Whether a request has a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** Methods whose bodies Node frames by itself. */
const framedByNode = new Set(['POST', 'PUT', 'PATCH'])

/** The transfer encoding belongs to one connection, but that there is a body does not. */
function framed(request: IncomingMessage, headers: HeaderRecord): HeaderRecord {
  const { method = 'GET', headers: sent } = request
  if (sent['transfer-encoding'] === undefined || framedByNode.has(method)) return headers
  return { ...headers, 'transfer-encoding': 'chunked' }
}
