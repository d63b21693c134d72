import type { IncomingMessage } from 'node:http'
import { acceptedTypes, refuseAmbiguousHeaders } from '../http/index.ts'
import {
  addonHostOf,
  type HostName,
  isLoopback,
  portSuffix,
  readAddonHost,
  readHost,
} from './addon-origin.ts'
import type { AnswerHome } from './answer-headers.ts'
import { isNavigation, refuseForeignPages } from './browser-check.ts'
import type { ForwardPlan } from './forward.ts'
import { type ProxiedPath, readProxiedPath, type ServiceId, servicePrefix } from './proxied-path.ts'
import { forbidden, malformed, pageNotFound, Refusal } from './refusal.ts'
import type { RequestFilter } from './request-filter.ts'
import {
  cleanPath,
  decodePath,
  readTarget,
  refuseDotSegments,
  type Target,
} from './request-target.ts'

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
  /** The API server's address. */
  readonly server: string
  /** Finds the port of a service whose address names none. */
  complete(service: ServiceId): Promise<ServiceId>
}

type Head = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders'>

interface Asked {
  readonly method: string
  readonly host: HostName
  readonly target: Target
  readonly head: Head
}

/**
 * Decides about a request from its head alone, in the order in which it is written here; throws a Refusal,
 * at once wherever nobody has to be asked.
 */
export function planRequest(head: Head, planner: Planner): Plan | Promise<Plan> {
  refuseAmbiguousHeaders(head)
  const { method = 'GET', rawHeaders } = head
  const host = readHost(rawHeaders)
  const target = readTarget(head.url ?? '')
  if (method === 'TRACE' || method === 'CONNECT') throw new Refusal(405, 'Method Not Allowed')
  planner.filter?.checkHost(host)
  if (planner.filter) refuseForeignPages({ method, rawHeaders, host })
  const asked = { method, host, target, head }
  const addon = readAddonHost(host)
  return addon ? planForAddon(asked, addon, planner) : planForPlainOrigin(asked, planner)
}

/** An add-on's own origin leads to the add-on and to nothing else. */
async function planForAddon(
  { method, host, target }: Asked,
  addon: ServiceId,
  planner: Planner,
): Promise<ForwardPlan> {
  refuseDotSegments(target.path)
  const service = await planner.complete(addon)
  const prefix = servicePrefix(service)
  const path = prefix + restOf(target.path, [prefix, servicePrefix(addon)])
  planner.filter?.checkPath(method, decodePath(path))
  const home = { prefix, mount: '', server: planner.server, trusted: true }
  return { kind: 'forward', path: path + target.query, home, addonHost: host }
}

/** The API server writes its own path into an application's links, so the add-on's own may come back with it. */
function restOf(path: string, own: readonly string[]): string {
  const proxied = readProxiedPath(decodePath(path))
  if (!proxied) return path
  const prefix = own.find((each) => each === proxied.prefix && path.startsWith(each))
  if (prefix !== undefined) return path.slice(prefix.length) || '/'
  throw forbidden('the API is not served at the address of an add-on')
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
  const { filter } = planner
  refuseDotSegments(path)
  filter?.checkPath(method, decodePath(path))
  const proxied = proxiedPathOf(path)
  if (!proxied) return { kind: 'forward', path: path + target.query }
  const forwarded = proxied.prefix + proxied.rest
  if (forwarded !== path) filter?.checkPath(method, decodePath(forwarded))
  if (filter && isNavigation(head.rawHeaders)) {
    if (method !== 'GET' && method !== 'HEAD')
      throw forbidden('forms are sent to an add-on at its own address')
    const location = isLoopback(host) && ownAddress(proxied, asked)
    if (location) return { kind: 'redirect', location }
  }
  return { kind: 'forward', path: forwarded + target.query, home: homeOf(proxied, planner) }
}

/** What the API server will see once it has decoded the path must be what we see now. */
function proxiedPathOf(path: string): ProxiedPath | undefined {
  const sent = readProxiedPath(path)
  const text = decodePath(path)
  const decoded = readProxiedPath(text)
  if (!sent && !decoded) {
    // Some servers read over an empty segment, and patterns do not.
    if (text.includes('//')) throw malformed('the path has encoded slashes')
    return undefined
  }
  if (!sent || !decoded || decodePath(sent.prefix) !== decoded.prefix)
    throw malformed('the path to a proxied application has encoded slashes')
  return { ...sent, ...(decoded.service && { service: decoded.service }) }
}

/** A page of an add-on belongs on the add-on's own origin, where it cannot use the API. */
function ownAddress({ service, rest }: ProxiedPath, { host, target }: Asked): string | undefined {
  const name = service && addonHostOf(service)
  return name && `http://${name}${portSuffix(host)}${rest || '/'}${target.query}`
}

function homeOf({ prefix }: ProxiedPath, { routes, server, filter }: Planner): AnswerHome {
  const { apiPrefix } = routes
  const mount = apiPrefix.startsWith('/api') ? prefix : apiPrefix.slice(0, -1) + prefix
  return { prefix: decodePath(prefix), mount, server, trusted: filter === undefined }
}
