import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  announcedTrailers,
  discardUnreadBody,
  headOf,
  keptTrailers,
  mayHaveTrailers,
} from '../../http/index.ts'
import { AnswerUnusable } from '../wire/index.ts'
import { answerHeaders } from './answer-headers.ts'
import { type Forwarding, forwardPlain } from './forward-plain.ts'
import { outgoing } from './outgoing.ts'
import { unanswered } from './upstream.ts'

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
  lingerMs,
}: Forwarding): Promise<void> {
  const { method = 'GET', url = '/' } = request
  const headers = outgoing(request, read, identity)
  const asked = upstream.begin({ method, path: url, headers })
  response.once('close', () => asked.destroy())
  request.pipe(asked)
  const { answer, switched } = await headOf(asked).catch((error: unknown) => {
    throw unanswered(error)
  })
  if (switched) {
    switched.socket.destroy()
    throw unanswered(new AnswerUnusable('nobody asked for another protocol'))
  }
  if (response.destroyed) {
    answer.destroy()
    return
  }
  // An add-on that has said all wants no more: what is left of the body would wait for it in vain.
  answer.once('end', () => {
    if (!asked.writableFinished) asked.destroy()
  })
  response.once('finish', () => discardUnreadBody(request, response, lingerMs))
  sendAnswer(answer, request, response)
}

function sendAnswer(
  answer: IncomingMessage,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { statusCode = 502, statusMessage, rawHeaders, headers } = answer
  const isChunked = headers['transfer-encoding'] !== undefined
  const mayHave = mayHaveTrailers(request, { status: statusCode, isChunked })
  const trailers = mayHave ? announcedTrailers(rawHeaders) : []
  const kept = answerHeaders(rawHeaders)
  if (trailers.length > 0) kept.push('Trailer', trailers.join(', '))
  response.writeHead(statusCode, statusMessage, kept)
  copy(answer, response, trailers)
}

/** By hand, since `pipeline` would make and abort a signal for every answer. */
function copy(
  answer: IncomingMessage,
  response: ServerResponse,
  trailers: readonly string[],
): void {
  let begun = false
  answer.on('data', (chunk: Buffer) => {
    begun = true
    if (!response.write(chunk)) answer.pause()
  })
  response.on('drain', () => answer.resume())
  answer.once('end', () => {
    begun = true
    if (trailers.length > 0) response.addTrailers(keptTrailers(answer.rawTrailers, trailers))
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
