import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import { pipeline, type Readable } from 'node:stream'
import { systemErrorCode } from '../../../core/index.ts'
import { htmlStreams, isReadableCoding, rewriteUrl } from '../rewrite/index.ts'
import { type AnswerPlaces, clientHeaders } from './answer-headers.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { relay } from './relay.ts'
import { hasBody } from './request-headers.ts'

/** Methods that change nothing, so that sending them twice does no harm. */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** What a connection that turns out to be closed reports. */
const closedCodes = new Set(['ECONNRESET', 'EPIPE'])

/** Sends a request to its backend and the answer back, each as it arrives; rejects while nothing has been answered. */
export async function forwardRequest(
  forwarding: Forwarding,
  response: ServerResponse,
): Promise<void> {
  await sendAnswer(forwarding, await send(forwarding), response)
}

/** Passes an answer on whose head has arrived. */
export async function sendAnswer(
  forwarding: Forwarding,
  answer: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    writeHead(forwarding, answer, response)
  } catch (cause) {
    answer.destroy()
    throw unreachable(cause)
  }
  if (forwarding.request.method === 'HEAD' || hasNoBody(answer)) {
    answer.resume()
    response.end()
    return
  }
  await sendBody(forwarding, answer, response)
}

async function send(forwarding: Forwarding): Promise<IncomingMessage> {
  for (;;) {
    const outgoing = open(forwarding)
    try {
      return await answerTo(outgoing, forwarding)
    } catch (error) {
      forwarding.signal.throwIfAborted()
      const isStale = outgoing.reusedSocket && closedCodes.has(systemErrorCode(error) ?? '')
      const { request } = forwarding
      // A kept connection that was closed meanwhile says nothing about its backend.
      if (isStale && safeMethods.has(request.method ?? '') && !hasBody(request)) continue
      throw unreachable(error)
    }
  }
}

function open({ connections, backend, request, path, headers }: Forwarding): ClientRequest {
  return openRequest({
    agent: connections.agentFor(backend),
    protocol: `${backend.scheme}:`,
    host: backend.host,
    port: backend.port,
    method: request.method,
    path,
    headers: [...headers],
  })
}

function answerTo(
  outgoing: ClientRequest,
  { request, signal, meters }: Forwarding,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', (answer: IncomingMessage) => {
      // A backend that has said all wants no more: what is left of the body would wait for it in vain.
      answer.once('end', () => {
        if (!outgoing.writableFinished) outgoing.destroy()
      })
      resolve(answer)
    })
    outgoing.on('error', reject) // stays: a cut after the answer's head is reported here as well
    // Not by Node's option: its requests do not notice an abort before they have a connection.
    const abort = (): void => {
      outgoing.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    outgoing.once('close', () => signal.removeEventListener('abort', abort))
    if (!hasBody(request)) {
      outgoing.end()
      return
    }
    request.once('error', () => outgoing.destroy())
    relay(request, outgoing, meters.toBackend)
  })
}

function writeHead(
  { places, added }: Forwarding,
  answer: IncomingMessage,
  response: ServerResponse,
): void {
  const headers = clientHeaders(answer.rawHeaders, places)
  for (const [name, values] of added) headers.set(name, [...(headers.get(name) ?? []), ...values])
  // The length of what it becomes is not known.
  if (isRewritten(answer)) headers.delete('content-length')
  for (const [name, values] of headers) {
    const [only = ''] = values
    response.setHeader(name, values.length > 1 ? values : only)
  }
  response.writeHead(answer.statusCode ?? 502)
}

const hasNoBody = ({ statusCode }: IncomingMessage): boolean =>
  statusCode === 204 || statusCode === 304

/** A part of a page cannot be read, and neither can a page in a coding or an alphabet that we do not know. */
function isRewritten({ headers, statusCode }: IncomingMessage): boolean {
  const type = headers['content-type']?.toLowerCase() ?? ''
  return (
    /^text\/html\s*(?:;|$)/.test(type) &&
    !/charset\s*=\s*"?utf-?(?:16|32)/.test(type) &&
    statusCode !== 206 &&
    isReadableCoding(codingOf(headers['content-encoding']))
  )
}

const codingOf = (header: string | undefined): string => header?.trim().toLowerCase() ?? ''

/** Resolves when the client has all of it or is gone. */
function sendBody(
  { places, meters, signal }: Forwarding,
  answer: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  return new Promise((resolve) => {
    const cut = (): void => {
      answer.destroy()
      if (!response.writableEnded) response.destroy(new Error('the answer broke off'))
    }
    response.once('close', () => {
      answer.destroy()
      resolve()
    })
    signal.addEventListener('abort', cut, { once: true })
    answer.once('close', () => {
      // What breaks off at the backend breaks off at the client too.
      if (!answer.readableEnded) cut()
    })
    const body = isRewritten(answer) ? rewritten(answer, places) : answer
    body.on('error', cut)
    let hasBegun = false
    body.once('data', () => {
      hasBegun = true
    })
    relay(body, response, meters.toClient)
    // Whoever waits for an event must know that it is open; but a body that is here goes with its head in one piece.
    setImmediate(() => {
      if (!hasBegun && !response.destroyed && !response.writableEnded) response.flushHeaders()
    })
  })
}

function rewritten(answer: IncomingMessage, places: AnswerPlaces): Readable {
  const coding = codingOf(answer.headers['content-encoding'])
  const streams = htmlStreams(coding, (url) => rewriteUrl(url, places))
  let last: Readable = answer
  for (const stream of streams) last = pipeline(last, stream, () => {})
  return last
}
