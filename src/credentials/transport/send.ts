import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
} from 'node:http'
import type { Readable } from 'node:stream'
import { onAbort, responseTo, SallyportError, systemErrorCode } from '../../core/index.ts'
import { type Credential, isSendableToken } from '../credential.ts'
import type { ConnectionPool } from './connection-pool.ts'
import type { Connections, Identity } from './connections.ts'
import {
  ClientConfigInvalid,
  ConnectionFailed,
  ConnectionRetired,
  connectionFailed,
  TryFailed,
} from './errors.ts'
import type { Generation } from './generation.ts'
import type { Http2Pool } from './http2-pool.ts'
import type { RequestHeaders, TransportRequest, TransportResponse } from './types.ts'

const known = new WeakMap<Credential, string>()

/** The Authorization header of a credential; undefined if it has only a certificate. */
export function authorizationOf(credential: Credential): string | undefined {
  const { token, basic } = credential
  if (!token && !basic) return undefined
  const found = known.get(credential)
  if (found !== undefined) return found
  const value = token ? bearer(token.reveal()) : basicAuthorization(basic)
  known.set(credential, value)
  return value
}

function bearer(token: string): string {
  if (isSendableToken(token)) return `Bearer ${token}`
  throw new ClientConfigInvalid('the token is empty or has characters that no header can carry')
}

function basicAuthorization(basic: Credential['basic']): string {
  const pair = `${basic?.username ?? ''}:${basic?.password.reveal() ?? ''}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

const hasUpperCase = /[A-Z]/

/** Headers by the names that decisions are made by: a caller's `Authorization` must not be missed for its spelling. */
export function withLowerCaseNames(headers: RequestHeaders): RequestHeaders {
  if (!Object.keys(headers).some((name) => hasUpperCase.test(name))) return headers
  const result: Record<string, string | readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    const before = result[lower]
    result[lower] = before === undefined ? value : [before, value].flat()
  }
  return result
}

/**
 * The headers of a request with those that say who sends it, set last. Where the configuration
 * impersonates, nothing of the caller's own impersonation is left to mix with it.
 */
export function withIdentity(
  headers: RequestHeaders,
  fixed: RequestHeaders | undefined,
  authorization: string | undefined,
): Record<string, string | readonly string[]> {
  const kept = fixed && impersonates(fixed) ? withoutImpersonation(headers) : headers
  return { ...kept, ...fixed, ...(authorization !== undefined && { authorization }) }
}

const isImpersonation = (name: string): boolean => name.startsWith('impersonate-')

const impersonates = (headers: RequestHeaders): boolean =>
  Object.keys(headers).some(isImpersonation)

const withoutImpersonation = (headers: RequestHeaders): RequestHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !isImpersonation(name)))

/** Methods that change nothing, so that sending them twice does no harm. */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** What a connection that turns out to be closed reports. */
const closedCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** A request and who sends it. */
export interface Attempt {
  readonly connections: Connections
  readonly request: TransportRequest
  readonly identity: Identity
  /** Who sends it when the connections of `identity` were retired meanwhile. */
  again(): Identity | Promise<Identity>
}

/** Sends a request; goes again when a kept connection turned out to be closed and nothing can be done twice. */
export async function sendOnce(attempt: Attempt): Promise<TransportResponse> {
  const { request, connections } = attempt
  let { identity } = attempt
  for (let tries = 0; ; tries++) {
    request.signal.throwIfAborted()
    if (identity.generation.retired) identity = await attempt.again()
    const { generation } = identity
    try {
      const headers = headersOf(connections, request, identity.credential)
      const http2 = prefersHttp2(connections, request) && (await generation.http2(request.signal))
      if (http2) return await sendHttp2(http2, { connections, request, headers })
      return await sendHttp1(generation, { connections, request, headers })
    } catch (error) {
      request.signal.throwIfAborted()
      const cause = error instanceof TryFailed ? error.cause : error
      if (cause instanceof SallyportError && !(cause instanceof ConnectionFailed)) throw cause
      if (!mayRepeat(error, request, generation) || tries > connections.route.maxConnections)
        throw connectionFailed(connections.server, cause)
    }
  }
}

const prefersHttp2 = ({ options, route }: Connections, { path }: TransportRequest): boolean =>
  route.http2 !== false && (options.http === '2' || isLongLived(path))

function headersOf(
  { options }: Connections,
  { headers }: TransportRequest,
  credential: Credential | undefined,
): RequestHeaders {
  return withIdentity(headers, options.headers, credential && authorizationOf(credential))
}

function mayRepeat(error: unknown, request: TransportRequest, generation: Generation): boolean {
  if (request.stream !== undefined && typeof request.stream !== 'function') return false
  if (error instanceof ConnectionRetired && !error.sent) return true
  if (!safeMethods.has(request.method)) return false
  return generation.retired || (error instanceof TryFailed && error.stale)
}

/** A request as it goes on the wire. */
interface Outgoing {
  readonly connections: Connections
  readonly request: TransportRequest
  readonly headers: RequestHeaders
}

function sendHttp2(pool: Http2Pool, outgoing: Outgoing): Promise<TransportResponse> {
  const { request, connections } = outgoing
  const { basePath } = connections.route.addresses.all[0]
  const { host: _, connection: __, ...headers } = outgoing.headers
  return pool.request({
    headers: { ...headers, ':method': request.method, ':path': basePath + request.path },
    body: bodyOf(request),
    signal: request.signal,
  })
}

async function sendHttp1(generation: Generation, outgoing: Outgoing): Promise<TransportResponse> {
  const { request } = outgoing
  const pool = isLongLived(request.path) ? generation.streams : generation.requests
  const opened = openHttp1(pool, outgoing)
  try {
    const response = await answerTo(opened, request)
    return { status: response.statusCode ?? 0, headers: response.headers, body: response }
  } catch (error) {
    if (error instanceof ConnectionRetired) throw error
    throw new TryFailed(error, opened.reusedSocket && isClosed(error))
  }
}

/** An HTTP/1.1 request that waits for its connection. */
export function openHttp1(
  pool: ConnectionPool,
  { connections, request, headers }: Outgoing,
): ClientRequest {
  const [{ host, port, basePath }] = connections.route.addresses.all
  return openRequest({
    host,
    port,
    agent: asAgent(pool),
    protocol: pool.protocol,
    method: request.method,
    path: basePath + request.path,
    headers: headers as Record<string, string | string[]>,
  })
}

/** Node's client wants of its agent just what a pool has; its types want the whole class. */
const asAgent = (pool: ConnectionPool): Agent => pool as unknown as Agent

const isClosed = (error: unknown): boolean => closedCodes.has(systemErrorCode(error) ?? '')

/** Watches and logs that are followed hold their connection for minutes. */
export const isLongLived = (path: string): boolean => /[?&](watch|follow)=(true|1)(&|$)/.test(path)

const bodyOf = ({
  body,
  stream,
}: Pick<TransportRequest, 'body' | 'stream'>): Buffer | Readable | undefined =>
  typeof stream === 'function' ? stream() : (stream ?? body)

function answerTo(
  outgoing: ClientRequest,
  { signal, ...request }: TransportRequest,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    responseTo(outgoing).then(resolve, reject)
    // Not by Node's option: its requests do not notice an abort before they have a connection.
    const abort = (): void => {
      outgoing.destroy()
      reject(signal.reason)
    }
    outgoing.once('close', onAbort(signal, abort))
    const body = bodyOf(request)
    if (body === undefined || Buffer.isBuffer(body)) outgoing.end(body)
    else body.on('error', (error) => outgoing.destroy(error)).pipe(outgoing)
  })
}
