import type { IncomingMessage } from 'node:http'
import { badRequest } from '../core/index.ts'
import { foldHeaderName, SpellingCache } from './raw-headers.ts'

// Two readers that each take another one of these see two different requests.
const singletons = [
  'authorization',
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
]
const framing = new Set(['content-length', 'transfer-encoding'])

/** How the body of a request is framed, as its headers say. */
interface RequestFraming {
  readonly httpVersion: string
  readonly transferEncoding: string | undefined
  readonly contentLength: string | undefined
}

/**
 * What is wrong with the framing of an HTTP/1 request (RFC 9112 §6). Stricter than Node's parser: it accepts lengths
 * with leading zeros, chunks on HTTP/1.0, and requests that call themselves HTTP/0.9 or HTTP/2.0.
 */
export function framingProblem(request: RequestFraming): string | undefined {
  const { httpVersion, transferEncoding, contentLength } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return 'the request line must say HTTP/1.1 or HTTP/1.0'
  if (contentLength !== undefined && !/^(?:0|[1-9]\d{0,15})$/.test(contentLength))
    return 'the header content-length must be a decimal number without leading zeros'
  if (transferEncoding === undefined) return undefined
  if (transferEncoding.toLowerCase() !== 'chunked')
    return 'the only transfer encoding that is supported is chunked'
  if (contentLength !== undefined) return 'a request has content-length or transfer-encoding'
  return httpVersion === '1.0' ? 'HTTP/1.0 has no transfer-encoding' : undefined
}

type Request = Pick<IncomingMessage, 'rawHeaders' | 'headers' | 'httpVersion'> & {
  readonly socket?: object
}

/** Connections of HTTP/1 on which an ambiguous request was seen. */
const poisoned = new WeakSet()

/** Has everything that follows a refused request on its connection ignored. */
export function ignoreFollowing(request: Request): void {
  if (request.socket && !isHttp2(request)) poisoned.add(request.socket)
}

/** Whether an ambiguous request was seen on a connection: requests that follow on it must be ignored. */
export const isPoisoned = (socket: object): boolean => poisoned.has(socket)

/**
 * Refuses a request that could be read in two ways: a header that may be there only once is there twice, a body is
 * framed in an unusual way, or HTTP/2 names two hosts.
 */
export function refuseAmbiguousHeaders(request: Request): void {
  const problem = ambiguityOf(request)
  if (problem === undefined) return
  ignoreFollowing(request)
  throw badRequest(problem)
}

const isHttp2 = ({ headers }: Request): boolean => headers[':method'] !== undefined

function ambiguityOf(request: Request): string | undefined {
  const { headers, httpVersion } = request
  const host = headers[':authority']
  if (headers.host !== undefined && host !== undefined && headers.host !== host)
    return 'the headers host and :authority name different hosts'
  const problem = headerAmbiguity(request.rawHeaders)
  if (problem !== undefined || isHttp2(request)) return problem
  // Not by Node's `requireHostHeader`, which responds itself and then serves what follows on the connection.
  if (httpVersion === '1.1' && headers.host === undefined) return 'the header host is missing'
  const { 'transfer-encoding': transferEncoding, 'content-length': contentLength } = headers
  return framingProblem({ httpVersion, transferEncoding, contentLength })
}

/** What is wrong with the names of headers: one is there twice, or is an odd spelling of one that frames the body. */
export function headerAmbiguity(rawHeaders: readonly string[]): string | undefined {
  let seen = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const spelt = rawHeaders[index] ?? ''
    const bit = singletonBits.get(spelt)
    if (bit === undefined) continue
    if (bit === oddSpelling)
      return `the header ${JSON.stringify(spelt)} is an odd spelling of another one`
    if ((seen & bit) !== 0) return `the header ${spelt.toLowerCase()} is there twice`
    seen |= bit
  }
  return undefined
}

const oddSpelling = 0

/** The bit of a header that may be there only once, or `oddSpelling`. */
const singletonBits = new SpellingCache((spelt) => {
  const name = spelt.toLowerCase()
  const at = singletons.indexOf(name)
  if (at >= 0) return 1 << at
  return /[^a-z0-9-]/.test(name) && framing.has(foldHeaderName(name)) ? oddSpelling : undefined
})
