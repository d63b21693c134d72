import { badRequest, type RequestInfo } from '../core/index.ts'
import { checkUnread, type SegmentReader, segmentReaderFor } from './request-path.ts'

/** A request's meaning plus the part of its path that only a service behind a proxy understands. */
export interface ParsedRequest extends RequestInfo {
  /** What follows the last segment we interpret, as sent and with its leading slash; usually empty. */
  readonly rest: string
}

class Parsed implements ParsedRequest {
  isResourceRequest = false
  path: string
  verb: string
  group = ''
  version = ''
  namespace = ''
  resource = ''
  subresource = ''
  name = ''
  fieldSelector = ''
  rest = ''
  readonly #search: string
  #query: URLSearchParams | undefined

  constructor(path: string, search: string, verb: string) {
    this.path = path
    this.verb = verb
    this.#search = search
  }

  /** Most requests have no query, or one that nobody reads. */
  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#search)
    return this.#query
  }

  get hasQuery(): boolean {
    return this.#search !== ''
  }
}

/** The segments of a path and how far they have been interpreted. */
interface Segments {
  readonly raw: readonly string[]
  readonly read: SegmentReader
  at: number
}

// HTTP/2 lets a client call its method anything, `constructor` too.
const verbOfMethod: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
])
const namespaceSubresources = new Set(['status', 'finalize'])

/**
 * What a request means, in Kubernetes' terms. This is the only reader of paths: authorization and
 * routing both use its result, so they cannot disagree.
 */
export function parseRequestInfo(method: string, url: string): ParsedRequest {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const info = new Parsed(path, mark < 0 ? '' : url.slice(mark + 1), method.toLowerCase())
  const segments = segmentsOf(path)
  const prefix = readGroupAndVersion(segments, info)
  if (!prefix) return plainPath(info, segments)
  info.isResourceRequest = true
  const legacy = readLegacyVerb(segments)
  info.verb = legacy === 'watch' ? 'watch' : (verbOfMethod.get(method) ?? '')
  readObject(segments, info, legacy === 'proxy')
  readCollectionVerb(info)
  return info
}

function segmentsOf(path: string): Segments {
  const read = segmentReaderFor(path)
  const end = path.length > 1 && path.endsWith('/') ? -1 : undefined
  return { raw: path === '/' ? [] : path.slice(1, end).split('/'), read, at: 0 }
}

const left = (segments: Segments): number => segments.raw.length - segments.at

function next(segments: Segments): string {
  const segment = segments.raw[segments.at]
  if (segment === undefined) return ''
  segments.at++
  return segments.read(segment)
}

function peek(segments: Segments, ahead = 0): string {
  const segment = segments.raw[segments.at + ahead]
  return segment === undefined ? '' : segments.read(segment)
}

/** False for paths that name no resource, such as `/api/v1` or `/healthz`. */
function readGroupAndVersion(segments: Segments, info: Parsed): boolean {
  if (left(segments) < 3) return false
  const prefix = peek(segments)
  if (prefix !== 'api' && (prefix !== 'apis' || left(segments) < 4)) return false
  segments.at = 1
  if (prefix === 'apis') info.group = next(segments)
  info.version = next(segments)
  return true
}

/** The forms `/watch/...` and `/proxy/...`, deprecated long ago and still written by old clients. */
function readLegacyVerb(segments: Segments): 'watch' | 'proxy' | undefined {
  const first = peek(segments)
  if (first !== 'watch' && first !== 'proxy') return undefined
  if (left(segments) < 2) throw badRequest('unable to determine kind and namespace from the path')
  segments.at++
  return first
}

function readObject(segments: Segments, info: Parsed, legacyProxy: boolean): void {
  if (peek(segments) === 'namespaces' && left(segments) > 1) {
    info.namespace = peek(segments, 1)
    if (left(segments) > 2 && !namespaceSubresources.has(peek(segments, 2))) segments.at += 2
  }
  info.resource = next(segments)
  info.name = next(segments)
  // The old root form of the proxy is an alias: one subresource to grant, one way to be checked.
  info.subresource = legacyProxy ? 'proxy' : next(segments)
  info.rest = left(segments) > 0 || info.subresource === 'proxy' ? unread(segments, info.path) : ''
}

function unread(segments: Segments, path: string): string {
  let start = 0
  for (let index = 0; index < segments.at; index++) start += 1 + (segments.raw[index]?.length ?? 0)
  const rest = path.slice(start)
  checkUnread(rest)
  return rest
}

/** A `get` or `delete` without a name concerns the collection; a field selector may still name one object. */
function readCollectionVerb(info: Parsed): void {
  if (info.name !== '') return
  if (info.verb === 'delete') info.verb = 'deletecollection'
  if (info.verb !== 'get') return
  info.verb = 'list'
  if (!info.hasQuery) return
  const watch = info.query.get('watch')
  if (watch !== null && watch !== '0' && watch.toLowerCase() !== 'false') info.verb = 'watch'
  info.fieldSelector = info.query.get('fieldSelector') ?? ''
  info.name = nameRequiredBy(info.fieldSelector)
}

const exactName = /^metadata\.name==?([^=!]+)$/

/** Only the plainest form counts: whoever escapes gets the rights of the whole collection checked. */
function nameRequiredBy(fieldSelector: string): string {
  if (!fieldSelector.includes('metadata.name') || fieldSelector.includes('\\')) return ''
  for (const term of fieldSelector.split(',')) {
    const name = exactName.exec(term)?.[1]
    if (name !== undefined) return /[/%]|^\.{1,2}$/.test(name) ? '' : name
  }
  return ''
}

function plainPath(info: Parsed, segments: Segments): Parsed {
  // Reading every segment is the check; a path that was plain comes back as it was.
  const path = `/${segments.raw.map((segment) => segments.read(segment)).join('/')}`
  info.path = info.path.length > 1 && info.path.endsWith('/') ? `${path}/` : path
  return info
}

const longRunningSubresources = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/** True for requests that may take as long as they like: watches and streams. */
export function isLongRunning(info: RequestInfo): boolean {
  return (
    info.verb === 'watch' ||
    (info.isResourceRequest && longRunningSubresources.has(info.subresource))
  )
}
