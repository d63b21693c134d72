import { badRequest, methodNotAllowed, notServed } from './errors.ts'
import { goQuote } from './quote.ts'

/** What a request's method and URL mean in Kubernetes' terms. */
export interface RequestInfo {
  /** True for `/api/...` and `/apis/...` paths that name a resource. */
  readonly isResourceRequest: boolean
  /** Without the query: as sent for resource requests, percent-decoded for plain paths. */
  readonly path: string
  /** get, list, watch, create, update, patch, delete, deletecollection; of plain paths and OPTIONS the method in lower case, `get` for HEAD. */
  readonly verb: string
  /** Empty strings where a part does not apply. */
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** Of lists and watches. */
  readonly fieldSelector?: string
  readonly query: URLSearchParams
  /** What follows the last interpreted segment, as sent and with its leading slash; usually empty. */
  readonly rest: string
  /** Set if the request is for a proxy of the core API: a Service, a Pod or a node. */
  readonly proxy?: ProxyTarget | undefined
}

const singular = { services: 'service', pods: 'pod', nodes: 'node' } as const

/** The core resources that have the subresource `proxy`. */
export type ProxiedResource = keyof typeof singular

/** An object behind the API server's proxy: `name`, `name:port` or `scheme:name:port` of a URL. */
export interface ProxyTarget {
  readonly resource: ProxiedResource
  /** Empty for nodes. */
  readonly namespace: string
  readonly name: string
  /** Name or number; empty if the URL has none. */
  readonly port: string
  /** Empty if the URL has none. */
  readonly scheme: '' | 'http' | 'https'
}

class Parsed implements RequestInfo {
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
  proxy: ProxyTarget | undefined = undefined
  readonly #search: string
  #query: URLSearchParams | undefined

  constructor(path: string, search: string, verb: string) {
    this.path = path
    this.verb = verb
    this.#search = search
  }

  /** Parsed on first use: most requests have no query, or one that no step reads. */
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

/** Verbs of methods: for resources and for plain paths. HTTP/2 permits any method name, `constructor` too. */
const verbsOfMethod: ReadonlyMap<string, readonly [resource: string, plain: string]> = new Map([
  ['GET', ['get', 'get']],
  // Returns less than GET, and no role names it.
  ['HEAD', ['get', 'get']],
  ['POST', ['create', 'post']],
  ['PUT', ['update', 'put']],
  ['PATCH', ['patch', 'patch']],
  ['DELETE', ['delete', 'delete']],
  ['OPTIONS', ['options', 'options']],
])
const namespaceSubresources = new Set(['status', 'finalize'])

/**
 * Parses what a request means. This is the only parser of API paths: authorization, audit, routing, the local proxy
 * and the browser checks use its result, so they cannot disagree.
 *
 * @throws ApiError 400, 404 or 405 for what it cannot classify: a path that two parsers could read in two ways, a
 * legacy prefix where none exists, a method without a verb.
 */
export function parseRequestInfo(method: string, url: string): RequestInfo {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const segments = segmentsOf(path)
  const verbs = verbsOfMethod.get(method)
  if (verbs === undefined) throw methodNotAllowed()
  const info = new Parsed(path, mark < 0 ? '' : url.slice(mark + 1), verbs[1])
  const prefix = readGroupAndVersion(segments, info)
  if (!prefix) return plainPath(info, segments)
  info.isResourceRequest = true
  info.verb = verbs[0]
  const legacy = readLegacyPrefix(segments)
  readObject(segments, info, legacy === 'proxy')
  if (legacy === 'watch') readLegacyWatch(info, method)
  if (info.subresource === 'proxy') readProxy(info, legacy === 'proxy')
  else if (info.verb === 'options') throw methodNotAllowed()
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

/** The prefixes `/watch/...` and `/proxy/...`: deprecated, and still written by old clients. */
function readLegacyPrefix(segments: Segments): 'watch' | 'proxy' | undefined {
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
  // The legacy form of the proxy is an alias: one subresource to grant, one path to check.
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

/** Under `/watch/` there are objects and collections only, and they are only read. */
function readLegacyWatch(info: Parsed, method: string): void {
  if (info.subresource !== '' || info.rest !== '') throw notServed()
  if (method !== 'GET') throw methodNotAllowed()
  info.verb = 'watch'
}

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/
const subdomain = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const portShape = /^[a-zA-Z0-9-]{0,63}$/

/** Services and Pods are proxied in their namespace, nodes without one: rights are checked in the same scope. */
function readProxy(info: Parsed, isLegacy: boolean): void {
  const { resource, namespace, name: id } = info
  if (info.group !== '' || info.version !== 'v1') {
    if (isLegacy) throw notServed()
    return
  }
  if (resource !== 'services' && resource !== 'pods' && resource !== 'nodes') throw notServed()
  if (resource === 'nodes' ? namespace !== '' : !label.test(namespace)) throw notServed()
  const target = parseProxyId(resource, id)
  if (!target) throw badRequest(`invalid ${singular[resource]} request ${goQuote(id)}`)
  info.proxy = { resource, namespace, ...target }
}

function parseProxyId(
  resource: ProxiedResource,
  id: string,
): Pick<ProxyTarget, 'name' | 'port' | 'scheme'> | undefined {
  const parts = id.split(':')
  if (parts.length > 3) return undefined
  const [scheme, name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  if (scheme !== '' && scheme !== 'http' && scheme !== 'https') return undefined
  const nameShape = resource === 'services' ? label : subdomain
  return nameShape.test(name) && portShape.test(port) ? { name, port, scheme } : undefined
}

/** `name`, `name:port` or `scheme:name:port`, as the API server's proxy names an object. */
export function proxyId({ name, port, scheme }: ProxyTarget): string {
  if (scheme !== '') return `${scheme}:${name}:${port}`
  return port === '' ? name : `${name}:${port}`
}

/** The path of the API server's proxy to an object in its one canonical form, without a slash at its end. */
export function proxyPrefix(target: ProxyTarget): string {
  const { resource, namespace } = target
  const parent = resource === 'nodes' ? resource : `namespaces/${namespace}/${resource}`
  return `/api/v1/${parent}/${proxyId(target)}/proxy`
}

/** True if the response comes from a program behind a proxy, of whichever API group. */
export const isProxied = (info: RequestInfo): boolean =>
  info.isResourceRequest && info.subresource === 'proxy'

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

/** Only the plainest form counts; for all others the permission for the whole collection is checked. */
function nameRequiredBy(fieldSelector: string): string {
  if (!fieldSelector.includes('metadata.name') || fieldSelector.includes('\\')) return ''
  for (const term of fieldSelector.split(',')) {
    const name = exactName.exec(term)?.[1]
    if (name !== undefined) return /[/%]|^\.{1,2}$/.test(name) ? '' : name
  }
  return ''
}

function plainPath(info: Parsed, segments: Segments): Parsed {
  // Reading every segment is the check; a path that was plain comes back unchanged.
  const path = `/${segments.raw.map((segment) => segments.read(segment)).join('/')}`
  info.path = info.path.length > 1 && info.path.endsWith('/') ? `${path}/` : path
  return info
}

// Unreserved and harmless characters only, no empty segment, no dot segment.
const clean = /^(?:\/(?!\/)(?!\.{1,2}(?:\/|$))[!$&'()*+,\-.0-9:;=@A-Z_a-z~]*)+$/
const foreignToPaths = /[^\x21-\x7e]|[\\#]/
const ambiguousWhenDecoded = /[/\\%\x00-\x1f\x7f]/
const dotSegment = /(?:^|\/|%2f|%5c)(?:\.|%2e){1,2}(?=\/|%2f|%5c|$)/i
const brokenEscape = /%(?![0-9a-f]{2})|%00/i

const refuse = (why: string) =>
  badRequest(`the path of the request is refused: ${why}; send it in its plain form`)

/** Decodes one segment of a path; throws 400 for one that two parsers could read in two ways. */
type SegmentReader = (segment: string) => string

const plain: SegmentReader = (segment) => segment

const decoded: SegmentReader = (segment) => {
  if (segment === '') throw refuse('it has an empty segment')
  if (foreignToPaths.test(segment)) throw refuse('it has a character that paths do not have')
  const text = segment.includes('%') ? percentDecoded(segment) : segment
  if (ambiguousWhenDecoded.test(text))
    throw refuse('a segment hides a separator or a control character')
  if (text === '.' || text === '..') throw refuse('it has a dot segment')
  return text
}

function percentDecoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw refuse('it has a broken percent-encoding')
  }
}

/** How the segments of `path` are decoded: not at all when all are plain, else checked one by one. */
function segmentReaderFor(path: string): SegmentReader {
  if (!path.startsWith('/'))
    throw badRequest('the request target must be a path that begins with "/"')
  return clean.test(path) ? plain : decoded
}

/** Refuses dot segments and broken escapes in the part of the path that is forwarded as sent. */
function checkUnread(rest: string): void {
  if (dotSegment.test(rest)) throw refuse('it has a dot segment')
  if (brokenEscape.test(rest)) throw refuse('it has a broken percent-encoding')
  if (foreignToPaths.test(rest)) throw refuse('it has a character that paths do not have')
}

const longRunningSubresources = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/** True for requests without a deadline: watches and streams. */
export function isLongRunning(info: RequestInfo): boolean {
  return (
    info.verb === 'watch' ||
    (info.isResourceRequest && longRunningSubresources.has(info.subresource))
  )
}
