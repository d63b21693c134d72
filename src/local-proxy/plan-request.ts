import type { IncomingMessage } from 'node:http'
import { hasTokenProtocol } from '../authn/index.ts'
import { isProxied, parseRequestInfo, proxyPrefix, type RequestInfo } from '../core/index.ts'
import {
  acceptedTypes,
  cleanPath,
  decodePath,
  foldHeaderName,
  headerPairs,
  maxForwardedHeaders,
  type RequestTarget,
  rawHeaderValues,
  refuseAmbiguousHeaders,
  splitTarget,
  targetProblem,
} from '../http/index.ts'
import {
  type AddonOrigin,
  type HostName,
  isLoopback,
  portSuffix,
  readAddonOrigin,
  readHost,
} from './addon-origin.ts'
import { isNavigation, refuseExecution, refuseForeignPages } from './browser-check.ts'
import type { ForwardPlan } from './forward-policy.ts'
import { forbidden, malformed, pageNotFound, Refusal } from './refusal.ts'
import type { RequestFilter } from './request-filter.ts'
import type { ServiceLookup } from './services.ts'

/** Under which paths what is served. */
export interface RouteOptions {
  readonly apiPrefix: string
  /** Absent where no files are served. */
  readonly staticPrefix?: string
}

/** What a path of the plain origin stands for. */
export type Route =
  | { readonly kind: 'api'; readonly path: string }
  | { readonly kind: 'static'; readonly path: string }
  | { readonly kind: 'redirect'; readonly path: string }

/** A prefix with a slash at both ends. */
export const asPrefix = (text: string): string =>
  `${text.startsWith('/') ? '' : '/'}${text}${text.endsWith('/') ? '' : '/'}`

/** Finds the longest prefix of a path; below one of `/api` the path stays whole, others are taken off. */
export function findRoute(path: string, { apiPrefix, staticPrefix }: RouteOptions): Route {
  const prefixes = [apiPrefix, ...(staticPrefix === undefined ? [] : [staticPrefix])]
  const [prefix] = prefixes
    .filter((each) => path.startsWith(each))
    .sort((a, b) => b.length - a.length)
  if (prefix === undefined) {
    if (prefixes.includes(`${path}/`)) return { kind: 'redirect', path: `${path}/` }
    throw pageNotFound()
  }
  // An exact prefix without its slash goes before a shorter one, as in Go.
  if (prefixes.some((each) => each === `${path}/` && each.length > prefix.length))
    return { kind: 'redirect', path: `${path}/` }
  if (prefix === staticPrefix) return { kind: 'static', path: path.slice(prefix.length) }
  if (prefix.startsWith('/api')) return { kind: 'api', path }
  return { kind: 'api', path: `/${path.slice(prefix.length)}` }
}

/** What is to be done with a request. */
export type Plan =
  | ForwardPlan
  | { readonly kind: 'static'; readonly path: string }
  | { readonly kind: 'home'; readonly host: HostName }
  | { readonly kind: 'redirect'; readonly location: string }

/** What decisions are made with. */
export interface Planner {
  /** Absent if nothing is to be filtered. */
  readonly filter?: RequestFilter
  readonly routes: RouteOptions
  readonly services: Pick<ServiceLookup, 'complete' | 'find' | 'hostOf'>
}

type Head = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders' | 'httpVersion'>

interface Asked {
  readonly method: string
  readonly host: HostName
  readonly target: RequestTarget
  readonly head: Head
}

/**
 * Decides about a request from its head alone, in the order in which it is written here; throws a Refusal,
 * at once wherever nobody has to be asked.
 */
export function planRequest(head: Head, planner: Planner): Plan | Promise<Plan> {
  const { method = 'GET', rawHeaders } = head
  if (rawHeaders.length > 2 * maxForwardedHeaders)
    throw new Refusal(
      431,
      `Request Header Fields Too Large: more than ${maxForwardedHeaders} lines`,
    )
  refuseAmbiguousHeaders(head)
  const host = readHost(rawHeaders)
  const target = readTarget(head.url ?? '')
  if (method === 'TRACE' || method === 'CONNECT') throw new Refusal(405, 'Method Not Allowed')
  planner.filter?.checkHost(host)
  if (planner.filter) refuseForeignPages({ method, rawHeaders, host })
  const asked = { method, host, target, head }
  const addon = readAddonOrigin(host)
  return addon ? planForAddon(asked, addon, planner) : planForPlainOrigin(asked, planner)
}

const maxPathLength = 8 * 1024

/** Only a path with a query is forwarded. */
function readTarget(url: string): RequestTarget {
  const problem = targetProblem(url)
  if (problem !== undefined) throw malformed(problem)
  const target = splitTarget(url)
  if (target.path.length > maxPathLength) throw new Refusal(414, 'URI Too Long')
  return target
}

/** An add-on's own origin leads to the add-on and to nothing else. */
async function planForAddon(
  { method, host, target }: Asked,
  addon: AddonOrigin,
  { services, filter }: Planner,
): Promise<ForwardPlan> {
  const named = addon.service ?? (await services.find(host.name))
  if (!named)
    throw new Refusal(
      404,
      `no service that you may list has the host ${host.name}: open it by its path at the API once`,
    )
  const service = await services.complete(named)
  const prefix = proxyPrefix(service)
  const path = prefix + ownRest(target.path, [prefix, proxyPrefix(named)])
  filter?.checkPath(method, decodePath(path))
  // The path that the API server will parse is parsed here, too: it leads to this add-on, or nowhere.
  const { proxy } = parseRequestInfo('GET', path)
  if (!proxy || proxyPrefix(proxy) !== prefix) throw forbidden('the path leaves the add-on')
  return { kind: 'forward', path: path + target.query, host, place: { kind: 'own', prefix, host } }
}

/** The API server writes its own path into an application's links, so the add-on's own may come back with it. */
function ownRest(path: string, own: readonly string[]): string {
  const info = parsed(path)
  if (!info?.proxy) return path
  if (own.includes(proxyPrefix(info.proxy))) return info.rest || '/'
  throw forbidden('the API is not served at the address of an add-on')
}

/** What means nothing to an API server may still be a path of an add-on. */
function parsed(path: string): RequestInfo | undefined {
  try {
    return parseRequestInfo('GET', path)
  } catch {
    return undefined
  }
}

function planForPlainOrigin(asked: Asked, planner: Planner): Plan {
  const { target, method, head } = asked
  const clean = cleanPath(target.path)
  if (clean !== target.path) return { kind: 'redirect', location: clean + target.query }
  const reads = method === 'GET' || method === 'HEAD'
  const isRoot = target.path === '/' && planner.routes.staticPrefix !== '/'
  if (isRoot && reads && wantsHtml(head)) return { kind: 'home', host: asked.host }
  const route = findRoute(target.path, planner.routes)
  if (route.kind === 'redirect') return { ...route, location: route.path + target.query }
  if (route.kind === 'static') return { kind: 'static', path: decodePath(route.path) }
  return planForApi(asked, route.path, planner)
}

const wantsHtml = ({ headers }: Head): boolean =>
  acceptedTypes(headers.accept ?? '*/*').some(
    ({ type, subtype }) => type === 'text' && subtype === 'html',
  )

function planForApi(asked: Asked, path: string, planner: Planner): Plan {
  const { method, target, head, host } = asked
  planner.filter?.checkPath(method, decodePath(path))
  // Whatever the method: what the path is decides where its content may be shown.
  const info = parseRequestInfo('GET', path)
  refuseExecution(head.rawHeaders)
  refuseOtherIdentity(head.rawHeaders)
  if (isProxied(info)) return planForShared(asked, path, info, planner)
  return { kind: 'forward', path: path + target.query, host, place: { kind: 'api' } }
}

/**
 * Refuses a request to the API that is meant to have another identity. With its headers removed it would be sent with
 * all rights of the proxy's user.
 */
function refuseOtherIdentity(rawHeaders: readonly string[]): void {
  const names = [...headerPairs(rawHeaders)].map(([name]) => name)
  const header = names.find((name) =>
    /^(?:authorization|impersonate.*)$/.test(foldHeaderName(name)),
  )
  const hasToken = hasTokenProtocol(rawHeaderValues(rawHeaders, 'sec-websocket-protocol'))
  if (header === undefined && !hasToken) return
  throw forbidden(
    `requests through this proxy have the identity of its kubeconfig: leave out ${header ?? 'the token in Sec-WebSocket-Protocol'}, or send the request to the API server itself`,
  )
}

/** A page of an add-on belongs on the add-on's own origin; all else of it is data here. */
function planForShared(
  asked: Asked,
  path: string,
  { proxy, rest }: RequestInfo,
  { filter, routes, services }: Planner,
): Plan {
  const { method, target, head, host } = asked
  const sent = path.slice(0, path.length - rest.length)
  const prefix = proxy ? proxyPrefix(proxy) : sent
  if (prefix !== sent) filter?.checkPath(method, decodePath(prefix + rest))
  if (isNavigation(head.rawHeaders)) {
    if (method !== 'GET' && method !== 'HEAD')
      throw forbidden('forms are sent to an add-on at its own address')
    if (proxy?.resource === 'services' && isLoopback(host)) {
      const own = `http://${services.hostOf(proxy)}${portSuffix(host)}`
      return { kind: 'redirect', location: own + (rest || '/') + target.query }
    }
  }
  const mount = routes.apiPrefix.startsWith('/api') ? sent : routes.apiPrefix.slice(0, -1) + sent
  const place = { kind: 'shared', prefix, mount } as const
  return { kind: 'forward', path: prefix + rest + target.query, host, place }
}
