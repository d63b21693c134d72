import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { badRequest } from '../core/index.ts'

/** The host that the client requests; HTTP/2 has a field of its own for it. */
export const hostOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string =>
  headers.host ?? String(headers[':authority'] ?? '')

/**
 * Every value of a header, in order and as it was sent. Security decisions read raw headers: Node's
 * `headers` keeps the first of two credentials silently and joins others.
 */
export function rawHeaderValues(rawHeaders: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase()
  const values: string[] = []
  // Asked several times per request: a plain loop, and the length tells most names apart.
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index] ?? ''
    if (found.length === wanted.length && found.toLowerCase() === wanted)
      values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** The names and values of raw headers, pair by pair. */
export function* headerPairs(
  rawHeaders: readonly string[],
): Generator<readonly [name: string, value: string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    yield [rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '']
  }
}

const maxKnownSpellings = 1_000
const maxSpellingLength = 64

/** What is known of a header name by its spelling as it was sent. Clients use few different ones. */
export class SpellingCache<T> {
  readonly #lookUp: (spelt: string) => T | undefined
  #known = new Map<string, T | undefined>()

  constructor(lookUp: (spelt: string) => T | undefined) {
    this.#lookUp = lookUp
  }

  get(spelt: string): T | undefined {
    const known = this.#known.get(spelt)
    if (known !== undefined || this.#known.has(spelt)) return known
    const found = this.#lookUp(spelt)
    // A client that sends thousands of names must not fill the memory.
    if (this.#known.size >= maxKnownSpellings) this.#known = new Map()
    if (spelt.length <= maxSpellingLength) this.#known.set(spelt, found)
    return found
  }
}

/** The raw headers whose names are not picked out. */
export function withoutHeaders(
  rawHeaders: readonly string[],
  isUnwanted: (name: string) => boolean,
): string[] {
  const kept: string[] = []
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (!isUnwanted(name)) kept.push(name, value)
  }
  return kept
}

/**
 * A header name as the most careless reader behind us would take it: CGI and its heirs see no
 * difference between `-` and whatever else is no letter and no digit, nor between cases.
 */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')
}

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

// Whoever could have these dropped could change where a request goes or where its body ends.
const neverNominated: readonly string[] = ['host', 'content-length']

/**
 * The headers of a message that go on to the next hop (RFC 9110 section 7.6.1): without those of one
 * connection, and without those that `Connection` names. Add headers of our own afterwards, or a client
 * could have them dropped. Pseudo-headers of HTTP/2 stay behind as well.
 */
export function endToEndHeaders(rawHeaders: readonly string[]): string[] {
  const dropped = droppedBy(rawHeaderValues(rawHeaders, 'connection'))
  return withoutHeaders(rawHeaders, (name) => name[0] === ':' || dropped.has(name.toLowerCase()))
}

/** Nearly every message names nothing but what is dropped anyway. */
function droppedBy(connection: readonly string[]): ReadonlySet<string> {
  let dropped: Set<string> | undefined
  for (const value of connection) {
    for (const nominated of value.split(',')) {
      const name = nominated.trim().toLowerCase()
      if (hopByHop.has(name) || neverNominated.includes(name)) continue
      dropped ??= new Set(hopByHop)
      dropped.add(name)
    }
  }
  return dropped ?? hopByHop
}

/** The head of an HTTP/1.1 response, for a socket that has left Node's server; to be written as latin1. */
export function responseHead(status: number, headers: readonly string[]): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (const [name, value] of headerPairs(headers)) lines.push(`${name}: ${value}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

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
