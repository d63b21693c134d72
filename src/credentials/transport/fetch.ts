import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ClusterRequest, ClusterResponse } from '../credential.ts'
import { discard, pathBelow, requestFunction } from './authenticated-request.ts'
import type { Connections } from './connections.ts'
import type { RequestHeaders, TransportRequest } from './types.ts'

/** Bytes that can be sent again, or a stream that cannot. */
type FetchBody = Buffer | Readable | undefined

/** What a call of `fetch` asks for. */
interface FetchOrder {
  readonly url: URL
  readonly method: string
  readonly headers: RequestHeaders
  readonly body: FetchBody
  readonly signal: AbortSignal
  readonly redirect: 'follow' | 'error' | 'manual'
}

type Arguments = Parameters<typeof globalThis.fetch>

/** Reads the arguments of a call of `fetch`; relative addresses are below `base`. */
async function readFetchOrder(
  base: string,
  input: Arguments[0],
  init: Arguments[1] = {},
): Promise<FetchOrder> {
  if (!(input instanceof Request) && isPlain(init)) return plainOrder(resolve(base, input), init)
  const target = input instanceof Request ? input : resolve(base, input)
  const streamed = init.body instanceof ReadableStream
  const request = new Request(target, { ...init, ...(streamed && { duplex: 'half' }) })
  return {
    url: new URL(request.url),
    method: request.method,
    headers: Object.fromEntries(request.headers),
    body: await bodyOf(request, streamed || (input instanceof Request && init.body === undefined)),
    signal: request.signal,
    redirect: request.redirect,
  }
}

const resolve = (base: string, input: string | URL): URL =>
  typeof input === 'string' && input.startsWith('/') ? new URL(base + input) : new URL(input)

type Init = NonNullable<Arguments[1]>
type PlainInit = Omit<Init, 'body'> & { readonly body?: string | Buffer | null }

/** Most calls need nothing that a Request object works out, and it costs more than the rest of a call. */
const isPlain = (init: Init): init is PlainInit =>
  init.body === undefined ||
  init.body === null ||
  typeof init.body === 'string' ||
  Buffer.isBuffer(init.body)

function plainOrder(url: URL, init: PlainInit): FetchOrder {
  const { body, signal, redirect = 'follow' } = init
  const method = normalMethod(init.method ?? 'GET')
  if (body != null && (method === 'GET' || method === 'HEAD'))
    throw new TypeError('a request with method GET or HEAD has no body')
  const headers = Object.fromEntries(new Headers(init.headers))
  if (typeof body === 'string') headers['content-type'] ??= 'text/plain;charset=UTF-8'
  return {
    url,
    method,
    headers,
    body: body == null ? undefined : Buffer.from(body),
    signal: signal ?? new AbortController().signal,
    redirect: redirect === 'error' || redirect === 'manual' ? redirect : 'follow',
  }
}

const normalised = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT']

/** As fetch does it: these names in any case, every other as it is. */
function normalMethod(method: string): string {
  const upper = method.toUpperCase()
  return normalised.includes(upper) ? upper : method
}

async function bodyOf(request: Request, streamed: boolean): Promise<FetchBody> {
  if (!request.body) return undefined
  if (streamed) return Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0])
  return Buffer.from(await request.arrayBuffer())
}

const maxRedirects = 20
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const bodiless: ReadonlySet<number> = new Set([101, 204, 205, 304])

/** The shape of the global `fetch`. */
export type FetchFunction = typeof globalThis.fetch

/**
 * A `fetch` that sends to the cluster only, as whom the credentials say. Relative addresses are below the
 * server's; a redirect to another origin is not followed.
 */
export function createFetch(connections: Connections): FetchFunction {
  const send = requestFunction(connections)
  return async (input, init) => {
    const order = await readFetchOrder(connections.server, input, init)
    return new Fetch(connections, send, order).run()
  }
}

class Fetch {
  readonly #connections: Connections
  readonly #send: (request: TransportRequest) => Promise<ClusterResponse>
  readonly #order: FetchOrder

  constructor(
    connections: Connections,
    send: (request: TransportRequest) => Promise<ClusterResponse>,
    order: FetchOrder,
  ) {
    this.#connections = connections
    this.#send = send
    this.#order = order
  }

  async run(): Promise<Response> {
    let { url, method, body } = this.#order
    for (let count = 0; ; count++) {
      const answer = await this.#ask(url, method, body)
      const location = redirects.has(answer.status) ? answer.headers.location : undefined
      if (location === undefined || this.#order.redirect === 'manual')
        return responseOf(answer, url, count > 0)
      discard(answer.body)
      if (this.#order.redirect === 'error' || count === maxRedirects || isStream(body))
        throw new TypeError(`${url.origin} redirects, which this request does not allow`)
      url = this.#follow(location, url)
      if (becomesGet(answer.status, method)) {
        method = 'GET'
        body = undefined
      }
    }
  }

  async #ask(url: URL, method: string, body: FetchBody): Promise<ClusterResponse> {
    const { headers, signal } = this.#order
    const request: ClusterRequest = {
      method,
      path: pathBelow(this.#connections, url),
      headers,
      signal,
    }
    if (Buffer.isBuffer(body)) return this.#send({ ...request, body })
    return this.#send(body ? { ...request, stream: body } : request)
  }

  #follow(location: string, from: URL): URL {
    const url = URL.canParse(location, from.href) ? new URL(location, from) : undefined
    if (url?.origin === from.origin) return url
    throw new TypeError(`${from.origin} redirects to another origin, which gets no credentials`)
  }
}

const isStream = (body: FetchBody): boolean => body !== undefined && !Buffer.isBuffer(body)

const becomesGet = (status: number, method: string): boolean =>
  (status === 303 && method !== 'HEAD') || ((status === 301 || status === 302) && method === 'POST')

function responseOf(answer: ClusterResponse, url: URL, redirected: boolean): Response {
  const { status, body } = answer
  const empty = bodiless.has(status)
  if (empty) discard(body)
  const stream = empty ? null : (Readable.toWeb(body) as ReadableStream<Uint8Array>)
  const response = new Response(stream, { status, headers: fetchHeaders(answer.headers) })
  // The constructor leaves both empty; only the fetch algorithm itself may set them.
  Object.defineProperties(response, {
    url: { value: url.href.replace(/#.*/, '') },
    redirected: { value: redirected },
  })
  return response
}

function fetchHeaders(headers: IncomingHttpHeaders): Headers {
  const result = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') result.set(name, value)
    else for (const each of value ?? []) result.append(name, each)
  }
  return result
}
