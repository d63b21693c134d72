import { Readable } from 'node:stream'
import type { RequestHeaders } from './transport-types.ts'

/** Bytes that can be sent again, or a stream that cannot. */
export type FetchBody = Buffer | Readable | undefined

/** What a call of `fetch` asks for. */
export interface FetchOrder {
  readonly url: URL
  readonly method: string
  readonly headers: RequestHeaders
  readonly body: FetchBody
  readonly signal: AbortSignal
  readonly redirect: 'follow' | 'error' | 'manual'
}

type Arguments = Parameters<typeof globalThis.fetch>

/** Reads the arguments of a call of `fetch`; relative addresses are below `base`. */
export async function readFetchOrder(
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
