import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { headerPairs, rawHeaderValues, withoutHeaders } from '../headers.ts'
import { takesTrailers } from '../trailers.ts'
import type { ResponseHead } from '../upstream/index.ts'

/**
 * Request headers, in lower case, that the forwarder answers itself or states anew. Whoever prepares the headers of a
 * request leaves them out.
 */
export const forwarderHeaders: ReadonlySet<string> = new Set([
  'expect',
  'content-length',
  'x-forwarded-for',
])

/** Adds what the next hop has to know: that trailers are welcome, and where the request comes from. */
export function addForwardingHeaders(headers: string[], request: IncomingMessage): void {
  const { socket, rawHeaders } = request
  const { te, 'x-forwarded-for': before } = request.headers
  if (te !== undefined && takesTrailers(rawHeaders)) headers.push('TE', 'trailers')
  const peer = socket.remoteAddress
  const hops = before && peer ? `${String(before)}, ${peer}` : String(before || (peer ?? ''))
  if (hops !== '') headers.push('X-Forwarded-For', hops)
}

const cacheControl = 'cache-control'
/** What kube-apiserver says where a handler says nothing. */
const defaultCacheControl = 'no-cache, private'

/**
 * Makes response headers, a flat list, fit for one user only: a cache on the way must not hand to one user what was
 * made for another. Several Cache-Control headers become one.
 */
export function makePrivate(headers: string[]): string[] {
  let at = -1
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (!isCacheControl(headers[index] ?? '')) continue
    if (at >= 0) return withOneCacheControl(headers)
    at = index
  }
  if (at < 0) headers.push('Cache-Control', defaultCacheControl)
  else headers[at + 1] = privateDirectives(headers[at + 1] ?? '')
  return headers
}

const isCacheControl = (name: string): boolean =>
  name.length === cacheControl.length && name.toLowerCase() === cacheControl

function withOneCacheControl(headers: readonly string[]): string[] {
  const directives = rawHeaderValues(headers, cacheControl).join(', ')
  const others = withoutHeaders(headers, isCacheControl)
  others.push('Cache-Control', privateDirectives(directives))
  return others
}

const plain = /^(?:private|no-store)(?:, ?[\w-]+(?:=\d+)?)*$/i
/** Directives that speak of shared caches. */
const shared = /^(?:public|private|s-maxage|proxy-revalidate)\b/i

/** `private` is put in front: with a list of fields, or behind a quote that is never closed, it would not count. */
function privateDirectives(directives: string): string {
  if (plain.test(directives) && !/public|s-maxage/i.test(directives)) return directives
  const kept = directives
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !shared.test(directive))
  return ['private', ...kept].join(', ')
}

/**
 * Writes the head of a response. If that fails, what a policy has set is taken back: the refusal that follows is ours
 * and not the upstream's.
 */
export function writeHead(response: ServerResponse, head: ResponseHead, headers: string[]): void {
  const { status } = head
  // HTTP/2 has no reason phrase.
  const reason = head.reason || STATUS_CODES[status] || 'Unknown'
  const isHttp1 = response.req.httpVersionMajor === 1
  try {
    if (isHttp1 && response.getHeaderNames().length === 0)
      response.writeHead(status, reason, headers)
    else {
      setHeaders(response, headers)
      if (isHttp1) response.writeHead(status, reason)
      else response.writeHead(status)
    }
  } catch (error) {
    response.statusMessage = ''
    for (const [name] of headerPairs(headers)) response.removeHeader(name)
    throw error
  }
}

/** In place of headers of the same names that were set before. */
function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  const byName = new Map<string, string[]>()
  for (const [name, value] of headerPairs(headers)) {
    const lower = name.toLowerCase()
    const values = byName.get(lower)
    if (values) values.push(value)
    else byName.set(lower, [value])
  }
  for (const [name, values] of byName) {
    const [only = ''] = values
    response.setHeader(name, values.length > 1 ? values : only)
  }
}
