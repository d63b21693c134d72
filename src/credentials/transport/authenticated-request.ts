import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { constants, createGunzip } from 'node:zlib'
import type { Credential, Refusal, RequestFn } from '../credential.ts'
import type { Connections, Identity } from './connections.ts'
import { sendOnce, withLowerCaseNames } from './send.ts'
import type { Transport, TransportRequest, TransportResponse } from './types.ts'

const unauthorized = 401
/** Longer than any refusal takes from its head to its end. */
const restMs = 200

/** Sends requests as whom the credentials say, and once more with a new credential when one is refused. */
async function sendIdentified(
  connections: Connections,
  request: TransportRequest,
): Promise<TransportResponse> {
  if (connections.isAnonymous(request.headers)) return sendAnonymous(connections, request)
  const identity = await connections.identity(request.signal)
  const { credential } = identity
  const response = await sendAs(connections, request, identity)
  if (response.status !== unauthorized || !credential || request.relayed) return response
  const next = await renewAfter(connections, request, { used: credential, response })
  if (!next || !isReplayable(request)) return response
  await readOut(response.body)
  return sendAs(connections, request, connections.identityOf(next))
}

const sendAnonymous = (
  connections: Connections,
  request: TransportRequest,
): Promise<TransportResponse> => {
  const again = (): Identity => ({ credential: undefined, generation: connections.anonymous() })
  return sendOnce({ connections, request, identity: again(), again })
}

const sendAs = (
  connections: Connections,
  request: TransportRequest,
  identity: Identity,
): Promise<TransportResponse> =>
  sendOnce({ connections, request, identity, again: () => connections.identity(request.signal) })

/** A source that fails to renew fails the request that needed it. */
async function renewAfter(
  connections: Connections,
  { signal }: TransportRequest,
  { used, response }: { readonly used: Credential; readonly response: TransportResponse },
): Promise<Credential | undefined> {
  try {
    return await connections.source?.renew(used, refusalOf(response), signal)
  } catch (error) {
    discard(response.body)
    throw error
  }
}

/** What a source may learn of an answer that refuses its credential. */
export function refusalOf({
  status,
  headers,
}: {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}): Refusal {
  const all: Record<string, readonly string[]> = Object.create(null)
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) all[name] = Array.isArray(value) ? value : [value]
  return { status, headers: all }
}

const isReplayable = ({ stream }: TransportRequest): boolean =>
  stream === undefined || typeof stream === 'function'

/** Waits a moment for the rest of a refusal, whose connection can then carry the replay. */
function readOut(body: Readable): Promise<void> {
  discard(body)
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, restMs)
    body.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Reads a body to its end so that its connection can serve again, unless it is a long one. */
export function discard(body: Readable): void {
  let left = 64 * 1024
  body.on('error', () => {})
  body.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) body.destroy()
  })
}

/** Asks for compressed answers where the caller has not said what it can read, and unpacks them. */
function withCompression(next: RequestFn): RequestFn {
  return async (request) => {
    if (request.headers['accept-encoding'] !== undefined || request.method === 'HEAD')
      return next(request)
    const headers = { ...request.headers, 'accept-encoding': 'gzip' }
    const response = await next({ ...request, headers })
    if (response.headers['content-encoding'] !== 'gzip') return response
    const { 'content-encoding': _, 'content-length': __, ...rest } = response.headers
    return { ...response, headers: rest, body: unpacked(response.body) }
  }
}

function unpacked(packed: Readable): Readable {
  // Each part of a stream is handed on as it comes, and an empty body is no broken archive.
  const gunzip = createGunzip({
    flush: constants.Z_SYNC_FLUSH,
    finishFlush: constants.Z_SYNC_FLUSH,
  })
  packed.on('error', (error) => gunzip.destroy(error))
  gunzip.on('close', () => packed.destroy())
  return packed.pipe(gunzip)
}

/** A transport on these connections; it follows no redirects. Destroying it cuts the connections. */
export function createTransport(connections: Connections): Transport {
  return {
    server: connections.server,
    send: requestFunction(connections),
    destroy: () => connections.destroy(),
  }
}

/** Everything that the options put round a request, the wrapper added last outermost. */
export function requestFunction(connections: Connections): RequestFn {
  const { wrappers = [], disableCompression } = connections.options
  const identified: RequestFn = (request) => sendIdentified(connections, request)
  const inner = disableCompression ? identified : withCompression(identified)
  const send = wrappers.reduce<RequestFn>((next, wrap) => wrap(next), inner)
  return (request) => send({ ...request, headers: withLowerCaseNames(request.headers) })
}

/** The path and query of a URL below the server's address; throws for a URL that is not the cluster's. */
export function pathBelow({ route, server }: Connections, url: URL): string {
  const known = route.addresses.all.find(({ origin }) => origin === url.origin)
  const path = url.pathname + url.search
  const base = known?.basePath ?? ''
  if (known && (path === base || path.startsWith(`${base}/`))) return path.slice(base.length) || '/'
  throw new TypeError(`requests go to ${server} only, not to ${url.origin}`)
}
