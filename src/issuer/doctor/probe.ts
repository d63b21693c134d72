import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { TLSSocket } from 'node:tls'
import { type Clock, responseTo, systemErrorCode } from '../../core/index.ts'

/** Who vouches for the certificate of a server. */
export type Trust = 'public' | 'given' | 'nobody'

/** What a GET without a credential came to; nothing is followed, nothing is refused. */
export interface Probe {
  readonly url: string
  /** Absent when nobody answered. */
  readonly status?: number
  readonly location?: string
  readonly contentType: string
  readonly cacheControl: string
  readonly body: Buffer
  readonly ms: number
  readonly trust: Trust
  /** Why nobody answered, or why nobody vouches. */
  readonly problem?: string
}

const limits = { timeoutMs: 10_000, maxBytes: 1024 * 1024 }

/** Asks for a document as the public sees it, and if nobody vouches for the server, with the CA that was given. */
export async function probe(url: string, caPem: string | undefined, clock: Clock): Promise<Probe> {
  const asPublic = await get(url, undefined, clock)
  if (asPublic.trust === 'public' || caPem === undefined || asPublic.status === undefined)
    return asPublic
  const asGiven = await get(url, caPem, clock)
  return asGiven.trust === 'public' ? { ...asGiven, trust: 'given' } : asPublic
}

async function get(url: string, caPem: string | undefined, clock: Clock): Promise<Probe> {
  const begin = clock.monotonic()
  const nothing = { url, contentType: '', cacheControl: '', body: Buffer.alloc(0) }
  try {
    const response = await send(url, caPem)
    const { headers, socket } = response
    const { location } = headers
    const trust = trustIn(socket)
    const body = await readSome(response)
    return {
      url,
      status: response.statusCode ?? 0,
      ...(location !== undefined && { location }),
      contentType: headers['content-type'] ?? '',
      cacheControl: headers['cache-control'] ?? '',
      body,
      ms: clock.monotonic() - begin,
      ...trust,
    }
  } catch (error) {
    const problem = systemErrorCode(error) ?? (error instanceof Error ? error.message : 'unknown')
    return { ...nothing, ms: clock.monotonic() - begin, trust: 'nobody', problem }
  }
}

function trustIn(socket: IncomingMessage['socket']): { trust: Trust; problem?: string } {
  if (!(socket instanceof TLSSocket)) return { trust: 'nobody', problem: 'it speaks no TLS' }
  if (socket.authorized) return { trust: 'public' }
  // Typed as an Error, and a code in truth.
  return { trust: 'nobody', problem: String(socket.authorizationError) }
}

function send(url: string, caPem: string | undefined): Promise<IncomingMessage> {
  const options = {
    agent: false,
    signal: AbortSignal.timeout(limits.timeoutMs),
    headers: { accept: 'application/json', 'accept-encoding': 'identity' },
    // Whether the certificate is trusted is part of the report; nothing secret is sent or believed.
    rejectUnauthorized: false,
    ...(caPem !== undefined && { ca: caPem }),
  }
  const request = url.startsWith('https:') ? httpsRequest : httpRequest
  return responseTo(request(url, options).end())
}

async function readSome(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > limits.maxBytes) break
  }
  return Buffer.concat(chunks)
}
