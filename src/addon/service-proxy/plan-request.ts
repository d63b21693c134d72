import type { IncomingMessage } from 'node:http'
import {
  type AuthorizedRequest,
  badRequest,
  type KubeObject,
  methodNotAllowed,
  notFound,
  wellKnownKinds,
} from '../../core/index.ts'
import { hasMarker, readAddAuth, type Trigger, wantsIdentity } from './add-auth.ts'
import { refuseForeignPages } from './browser-policy.ts'
import type { ServiceProxyParts } from './dependencies.ts'
import { hostOf } from './forward/index.ts'
import {
  nodeBackend,
  type ProxiedResource,
  type ProxyBackend,
  type ProxyTarget,
  podBackend,
  readTarget,
  serviceBackend,
} from './target.ts'

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

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Understands a request and finds its backend; throws for what is refused. */
export async function planRequest(
  { request, info }: AuthorizedRequest,
  resource: ProxiedResource,
  parts: ServiceProxyParts,
  signal: AbortSignal,
): Promise<Plan> {
  if (!methods.has(request.method ?? '')) throw methodNotAllowed()
  if (info.query.has('dryRun')) throw badRequest('dryRun is not supported')
  const target = readTarget({ resource, namespace: info.namespace, name: info.name })
  refuseForeignPages(request, target, hostOf(request), parts)
  const { query, asked } = readAddAuth(queryOf(request))
  const service = await serviceOf(target, parts, signal)
  const trigger = triggerOf(request, asked, service)
  const rest = info.rest ?? ''
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
  if (service) return serviceBackend(parts.targets, target, service, signal)
  if (target.resource === 'pods') return podBackend(parts.targets, target, signal)
  return nodeBackend(parts, target, signal)
}
