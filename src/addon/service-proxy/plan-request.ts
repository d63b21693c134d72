import type { IncomingMessage } from 'node:http'
import {
  type AuthorizedRequest,
  badRequest,
  type KubeObject,
  notFound,
  notServed,
  type ProxyTarget,
  wellKnownKinds,
} from '../../core/index.ts'
import { hasMarker, readAddAuth, type Trigger, wantsIdentity } from './add-auth.ts'
import { refuseForeignPages } from './browser-policy.ts'
import type { ServiceProxyParts } from './dependencies.ts'
import { nodeBackend, type ProxyBackend, podBackend, serviceBackend } from './target.ts'

/** What a request means to the proxy, before anybody is dialled. */
export interface Plan {
  readonly target: ProxyTarget
  /** Only where the target is one. */
  readonly service?: KubeObject
  readonly backend: ProxyBackend
  /** The path of the proxy to the add-on, as the client has written it. */
  readonly prefix: string
  /** Path and query at the backend; the path is empty when the client has left out even its slash. */
  readonly path: string
  readonly query: string
  readonly trigger?: Trigger
}

/** Understands a request and finds its backend; throws for what is refused. */
export async function planRequest(
  { request, info }: AuthorizedRequest,
  parts: ServiceProxyParts,
  signal: AbortSignal,
): Promise<Plan> {
  if (info.query.has('dryRun')) throw badRequest('dryRun is not supported')
  const { proxy: target, rest } = info
  if (target === undefined) throw notServed()
  refuseForeignPages(request, target)
  const { query, asked } = readAddAuth(queryOf(request))
  const service = await serviceOf(target, parts, signal)
  const trigger = triggerOf(request, asked, service)
  return {
    target,
    ...(service && { service }),
    backend: await backendOf(target, service, parts, signal),
    prefix: info.path.slice(0, info.path.length - rest.length),
    path: rest,
    query: query === '' ? '' : `?${query}`,
    ...(trigger && { trigger }),
  }
}

function queryOf({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  const query = mark < 0 ? '' : url.slice(mark + 1)
  // Browsers send none, and the next reader may end the query there.
  if (query.includes('#')) throw badRequest('the query of the request holds a fragment')
  return query
}

async function serviceOf(
  { resource, namespace, name }: ProxyTarget,
  { targets }: ServiceProxyParts,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  if (resource !== 'services') return undefined
  const service = await targets.get(wellKnownKinds.service, { namespace, name }, signal)
  if (!service) throw notFound(wellKnownKinds.service, name)
  return service
}

function triggerOf(
  { rawHeaders }: IncomingMessage,
  asked: boolean,
  service: KubeObject | undefined,
): Trigger | undefined {
  if (!service) {
    if (asked) throw badRequest('add-auth is for Services: a token is made for one of them')
    return undefined
  }
  if (asked) return 'query'
  if (wantsIdentity(service)) return 'annotation'
  return hasMarker(rawHeaders) ? 'cookie' : undefined
}

function backendOf(
  target: ProxyTarget,
  service: KubeObject | undefined,
  parts: ServiceProxyParts,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  if (service) return serviceBackend(parts, target, service, signal)
  if (target.resource === 'pods') return podBackend(parts, target, signal)
  return nodeBackend(parts, target, signal)
}
