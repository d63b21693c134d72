import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { answerHeaders } from './answer-headers.ts'
import type { GuardedRequest } from './read-request.ts'
import { answerOf, type Upstream, unanswered } from './upstream.ts'

/** One request of a known user on its way to the add-on and back. */
export interface Forwarding {
  readonly upstream: Upstream
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly read: GuardedRequest
  /** The headers that state who the user is. */
  readonly identity: readonly string[]
}

/** Sends a request on and its answer back, each as it arrives; rejects with GuardRefused while nothing is answered. */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { request, response } = forwarding
  const answer = await ask(forwarding).catch((error: unknown) => {
    throw unanswered(error)
  })
  if (response.destroyed) {
    answer.destroy()
    return
  }
  try {
    response.writeHead(
      answer.statusCode ?? 502,
      answer.statusMessage,
      answerHeaders(answer.rawHeaders),
    )
  } catch (error) {
    answer.destroy()
    throw unanswered(error)
  }
  copy(answer, response)
  // What the add-on does not want to read must not keep the connection waiting.
  if (!request.complete) answer.once('end', () => request.resume())
}

/** Asks once more when a kept connection was closed under a request that has no body. */
async function ask(forwarding: Forwarding): Promise<IncomingMessage> {
  try {
    return await askOnce(forwarding)
  } catch (error) {
    const { read, request, response } = forwarding
    const hasBody = read.isChunked || read.hasLength
    const isSafe = request.method === 'GET' || request.method === 'HEAD'
    if (!wasStale(error) || hasBody || !isSafe || response.destroyed) throw error
    return askOnce(forwarding)
  }
}

async function askOnce({
  upstream,
  request,
  response,
  read,
  identity,
}: Forwarding): Promise<IncomingMessage> {
  const { method = 'GET', url = '/' } = request
  const asked = upstream.begin({
    method,
    path: url,
    headers: outgoing(request, read, identity),
  })
  response.once('close', () => asked.destroy())
  if (read.isChunked || read.hasLength) request.pipe(asked)
  else asked.end()
  try {
    return await answerOf(asked)
  } catch (error) {
    throw asked.reusedSocket ? new StaleConnection(error) : error
  } finally {
    asked.on('error', ignore)
  }
}

const ignore = (): void => {}

class StaleConnection extends Error {
  constructor(cause: unknown) {
    super('a kept connection was closed', { cause })
  }
}

const wasStale = (error: unknown): boolean => error instanceof StaleConnection

/** Methods that Node would otherwise give a body of chunks. */
const usuallyWithBody = new Set(['POST', 'PUT', 'PATCH'])

/** What came without a claim to an identity, then ours: nothing that a client sends can take it away again. */
export function outgoing(
  request: IncomingMessage,
  read: GuardedRequest,
  identity: readonly string[],
): string[] {
  const { headers } = read
  if (read.isChunked) headers.push('Transfer-Encoding', 'chunked')
  else if (!read.hasLength && usuallyWithBody.has(request.method ?? ''))
    headers.push('Content-Length', '0')
  const hop = request.socket.remoteAddress
  const before = request.headers['x-forwarded-for']
  if (hop !== undefined) headers.push('X-Forwarded-For', before ? `${String(before)}, ${hop}` : hop)
  for (const item of identity) headers.push(item)
  return headers
}

/** By hand, since `pipeline` would make and abort a signal for every answer. */
function copy(answer: IncomingMessage, response: ServerResponse): void {
  let begun = false
  answer.on('data', (chunk: Buffer) => {
    begun = true
    if (!response.write(chunk)) answer.pause()
  })
  response.on('drain', () => answer.resume())
  answer.once('end', () => {
    begun = true
    response.end()
  })
  answer.on('error', () => response.destroy())
  // What breaks off breaks off at the client too.
  answer.once('close', () => {
    if (!answer.readableEnded) response.destroy()
  })
  // An event stream may be silent for long; but a body that is here already goes with its head in one piece.
  setImmediate(() => {
    if (!begun && !response.destroyed) response.flushHeaders()
  })
}

/** Cuts a request to the add-on without a word. */
export const cut = (asked: ClientRequest): void => void asked.on('error', ignore).destroy()
