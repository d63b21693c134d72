import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
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

/** How a document is fetched. */
export interface ProbeOptions {
  /** The only addresses to dial: the host of the URL was resolved before, and what it resolves to now does not count. */
  readonly addresses: readonly string[]
  readonly caPem?: string | undefined
  readonly clock: Clock
}

/** Fetches a document as the public sees it and, if no public CA has signed the certificate, with the given CA. */
export async function probe(url: string, options: ProbeOptions): Promise<Probe> {
  const { caPem } = options
  const asPublic = await get(url, { ...options, caPem: undefined })
  if (asPublic.trust === 'public' || caPem === undefined || asPublic.status === undefined)
    return asPublic
  const asGiven = await get(url, options)
  return asGiven.trust === 'public' ? { ...asGiven, trust: 'given' } : asPublic
}

async function get(url: string, options: ProbeOptions): Promise<Probe> {
  const { clock } = options
  const begin = clock.monotonic()
  const nothing = { url, contentType: '', cacheControl: '', body: Buffer.alloc(0) }
  try {
    const response = await send(url, options)
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

function send(url: string, { addresses, caPem }: ProbeOptions): Promise<IncomingMessage> {
  const options = {
    agent: false,
    lookup: lookupIn(addresses),
    signal: AbortSignal.timeout(limits.timeoutMs),
    headers: { accept: 'application/json', 'accept-encoding': 'identity' },
    // Whether the certificate is trusted is part of the report; nothing secret is sent or believed.
    rejectUnauthorized: false,
    ...(caPem !== undefined && { ca: caPem }),
  }
  const request = url.startsWith('https:') ? httpsRequest : httpRequest
  return responseTo(request(url, options).end())
}

/** Resolves every name to the given addresses. */
function lookupIn(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (name, options, done) => {
    const [first] = found
    if (!first)
      return done(Object.assign(new Error(`${name} has no address`), { code: 'ENOTFOUND' }), '')
    if (options.all) done(null, found)
    else done(null, first.address, first.family)
  }
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
