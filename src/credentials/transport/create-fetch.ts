import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ClusterRequest, ClusterResponse } from '../cluster-request.ts'
import type { Connections } from './connections.ts'
import { requestFunction } from './create-transport.ts'
import { type FetchBody, type FetchOrder, readFetchOrder } from './fetch-order.ts'
import { discard } from './identified-request.ts'
import { pathBelow } from './path-below.ts'
import type { TransportRequest } from './transport-types.ts'

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
