import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { systemErrorCode } from '../../../core/index.ts'
import { announcedTrailers, headOf, keptTrailers, mayHaveTrailers } from '../../../http/index.ts'
import { htmlStreams, isReadableCoding, rewriteUrl } from '../rewrite/index.ts'
import { clientHeaders } from './answer-headers.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { type Meter, metered, relay } from './relay.ts'
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
  writeHead(forwarding, answer, response)
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

async function answerTo(
  outgoing: ClientRequest,
  { request, signal, meters }: Forwarding,
): Promise<IncomingMessage> {
  const awaited = headOf(outgoing, signal)
  if (hasBody(request)) {
    request.once('error', () => outgoing.destroy())
    relay(request, outgoing, meters.toBackend)
  } else outgoing.end()
  const { answer, switched } = await awaited
  if (switched) {
    switched.socket.destroy()
    throw new Error('it changed to a protocol that nobody asked for')
  }
  // A backend that has said all wants no more: what is left of the body would wait for it in vain.
  answer.once('end', () => {
    if (!outgoing.writableFinished) outgoing.destroy()
  })
  return answer
}

/** Writes the head, or takes back what was written of it: the refusal that follows is ours and not the backend's. */
function writeHead(
  { places, added, request }: Forwarding,
  answer: IncomingMessage,
  response: ServerResponse,
): void {
  const headers = clientHeaders(answer.rawHeaders, places)
  for (const [name, values] of added) headers.set(name, [...(headers.get(name) ?? []), ...values])
  // The length of what it becomes is not known.
  if (isRewritten(answer)) headers.delete('content-length')
  const trailers = trailersOf(answer, request)
  if (trailers.length > 0) headers.set('trailer', [trailers.join(', ')])
  try {
    for (const [name, values] of headers) {
      const [only = ''] = values
      response.setHeader(name, values.length > 1 ? values : only)
    }
    response.writeHead(answer.statusCode ?? 502)
  } catch (cause) {
    answer.destroy()
    for (const name of headers.keys()) response.removeHeader(name)
    throw unreachable(cause)
  }
}

/** The trailers that an answer will have, where there is a body and a protocol that can have them. */
function trailersOf(answer: IncomingMessage, request: IncomingMessage): string[] {
  const { statusCode: status = 502, headers, rawHeaders } = answer
  const isChunked = headers['transfer-encoding'] !== undefined
  return mayHaveTrailers(request, { status, isChunked }) ? announcedTrailers(rawHeaders) : []
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
  forwarding: Forwarding,
  answer: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { request, meters, signal } = forwarding
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
    const isPage = isRewritten(answer)
    const body = isPage ? rewritten(answer, forwarding) : answer
    body.on('error', cut)
    if (signal.aborted) cut()
    let hasBegun = false
    body.once('data', () => {
      hasBegun = true
    })
    relay(body, response, isPage ? unmetered : meters.toClient, () => {
      const kept = keptTrailers(answer.rawTrailers, trailersOf(answer, request))
      if (kept.length > 0) response.addTrailers(kept)
    })
    // Whoever waits for an event must know that it is open; but a body that is here goes with its head in one piece.
    setImmediate(() => {
      if (!hasBegun && !response.destroyed && !response.writableEnded) response.flushHeaders()
    })
  })
}

const unmetered: Meter = () => 0

/**
 * A packed page counts as what it is and as what it unpacks to: a few bytes may stand for a page without end, and many
 * for nothing at all, and each of them costs us.
 */
function rewritten(answer: IncomingMessage, { places, meters }: Forwarding): Readable {
  const coding = codingOf(answer.headers['content-encoding'])
  const [first, ...others] = htmlStreams(coding, (url) => rewriteUrl(url, places))
  const counting = (): Transform => metered(meters.toClient)
  const isPacked = others.length > 0
  let last: Readable = answer
  for (const stream of [...(isPacked ? [counting()] : []), first, counting(), ...others])
    last = pipeline(last, stream, () => {})
  return last
}
