import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { type AnswerHome, answerHeaders } from './answer-headers.ts'
import type { HostName } from './host-header.ts'
import { requestHeaders } from './request-headers.ts'
import type { HeaderRecord, Upstream } from './upstream.ts'

/** Where a request goes, and for whom its answer is made fit. */
export interface ForwardPlan {
  readonly kind: 'forward'
  /** Path and query at the API server. */
  readonly path: string
  /** Absent for the API itself. */
  readonly home?: AnswerHome
  /** The host of an add-on's own origin. */
  readonly addonHost?: HostName
}

/** Sends a request on and its answer back, each as it arrives; rejects while nothing has been answered. */
export async function forward(
  upstream: Upstream,
  plan: ForwardPlan,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = 'GET' } = request
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  const answer = await upstream.send({
    method,
    path: plan.path,
    headers: framed(request, requestHeaders(request, plan.addonHost)),
    ...(hasBody(request) && { stream: request }),
    signal: gone.signal,
  })
  response.writeHead(answer.status, answerHeaders(answer.headers, plan.home))
  // A watch may be silent for long; its client must know at once that it is open.
  response.flushHeaders()
  await copy(answer.body, response)
}

/** Ends when the client has all of it or is gone. `pipeline` would make and abort a signal for every answer. */
function copy(body: Readable, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve)
    body.on('error', () => response.destroy())
    // What breaks off breaks off at the client too.
    body.once('close', () => {
      if (!body.readableEnded) response.destroy()
    })
    body.pipe(response)
  })
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** Methods whose bodies Node frames by itself. */
const framedByNode = new Set(['POST', 'PUT', 'PATCH'])

/** The transfer encoding belongs to one connection, but that there is a body does not. */
function framed(request: IncomingMessage, headers: HeaderRecord): HeaderRecord {
  const { method = 'GET', headers: sent } = request
  if (sent['transfer-encoding'] === undefined || framedByNode.has(method)) return headers
  return { ...headers, 'transfer-encoding': 'chunked' }
}
