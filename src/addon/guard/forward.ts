import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerHeaders } from './answer-headers.ts'
import { type Forwarding, forwardPlain } from './forward-plain.ts'
import { outgoing } from './outgoing.ts'
import { answerOf, unanswered } from './upstream.ts'

/** Sends a request on and its answer back, each as it arrives; rejects with GuardRefused while nothing is answered. */
export function forward(forwarding: Forwarding): Promise<void> {
  const { isChunked, hasLength } = forwarding.read
  return isChunked || hasLength ? forwardWithBody(forwarding) : forwardPlain(forwarding)
}

/** By Node's own client, which knows how to send bodies. */
async function forwardWithBody({
  upstream,
  request,
  response,
  read,
  identity,
}: Forwarding): Promise<void> {
  const { method = 'GET', url = '/' } = request
  const headers = outgoing(request, read, identity)
  const asked = upstream.begin({ method, path: url, headers })
  response.once('close', () => asked.destroy())
  request.pipe(asked)
  const answer = await answerOf(asked).catch((error: unknown) => {
    throw unanswered(error)
  })
  asked.on('error', ignore)
  if (response.destroyed) {
    answer.destroy()
    return
  }
  const { statusCode = 502, statusMessage, rawHeaders } = answer
  response.writeHead(statusCode, statusMessage, answerHeaders(rawHeaders))
  copy(answer, response)
  // What the add-on does not want to read must not keep the connection waiting.
  if (!request.complete) answer.once('end', () => request.resume())
}

const ignore = (): void => {}

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
