import {
  ApiDocuments,
  type ExtraResource,
  type ExtraSubresource,
  kindDefinitions,
  reviewResources,
  type ServerFacts,
} from '../../api/index.ts'
import {
  exposition,
  type Kind,
  type Logger,
  type MetricsRegistry,
  notServed,
  type RequestInfo,
} from '../../core/index.ts'
import type { RouteHandler } from '../pipeline/types.ts'
import { type HealthCheck, healthRoutes, ping, shutdownCheck, Unwell } from './health.ts'
import { createPathRoutes, type PathRoute, send, sendJson } from './route.ts'

const header = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.join(',')

/** API discovery and OpenAPI. */
function documentRoutes(
  server: ServerFacts,
  beside: {
    readonly extras: readonly ExtraSubresource[]
    readonly live: readonly ExtraResource[]
  },
): PathRoute[] {
  const documents = new ApiDocuments(
    { kinds: kindDefinitions, reviews: reviewResources, ...beside },
    server,
  )
  const handle: RouteHandler = ({ request, info }, response) => {
    const { headers } = request
    const answer = documents.answer({
      path: info.path,
      query: info.query,
      accept: headers.accept,
      acceptEncoding: header(headers['accept-encoding']),
      ifNoneMatch: headers['if-none-match'],
    })
    if (!answer) throw notServed()
    response.writeHead(answer.status, { ...answer.headers, 'Content-Length': answer.body.length })
    response.end(answer.body)
  }
  return documents.paths.flatMap((path) => [
    { path, handle },
    { path: `${path}/`, handle, listed: false },
  ])
}

/** What `/version` says; the fields are Kubernetes'. */
export interface VersionInfo {
  readonly major: string
  readonly minor: string
  readonly gitVersion: string
  readonly gitCommit: string
  readonly gitTreeState: string
  readonly buildDate: string
  readonly goVersion: string
  readonly compiler: string
  readonly platform: string
}

/** `/version`. */
export const versionRoute = (version: VersionInfo): PathRoute => ({
  path: '/version',
  handle: (_request, response) => sendJson(response, version),
})

/** `/metrics`. */
export const metricsRoute = (registry: MetricsRegistry): PathRoute => ({
  path: '/metrics',
  handle: (_request, response) => send(response, exposition, registry.expose()),
})

/** What plain paths are answered from. */
export interface PathParts {
  readonly version: VersionInfo
  readonly registry: MetricsRegistry
  readonly readiness: { readonly ready: boolean; readonly draining: AbortSignal }
  readonly log: Logger
  /** `host:port` that members of the cluster use. */
  readonly address: () => string
  readonly routes?: readonly PathRoute[]
  /** Subresources beside those of the table of kinds. */
  readonly extras?: readonly ExtraSubresource[]
  /** Resources beside those of the table of kinds. */
  readonly live?: readonly ExtraResource[]
}

const resourcePath = ({ group, version, resource }: Kind, subresource = ''): string =>
  `${group}/${version}/${resource}/${subresource}`

/** Tells which resources and subresources exist; `extensions` are further ones as `group/version/resource/subresource`. */
export function servedTest(extensions: Iterable<string> = []): (info: RequestInfo) => boolean {
  const served = new Set([
    ...kindDefinitions.flatMap(({ kind, subresources }) => [
      resourcePath(kind),
      ...subresources.map(({ name }) => resourcePath(kind, name)),
    ]),
    ...reviewResources.map((kind) => resourcePath(kind)),
    ...extensions,
  ])
  return ({ group, version, resource, subresource }) =>
    served.has(`${group}/${version}/${resource}/${subresource}`)
}

function startupCheck(readiness: PathParts['readiness']): HealthCheck {
  return {
    name: 'poststarthook/start-controllers',
    check() {
      if (!readiness.ready) throw new Unwell('the server is still starting')
    },
  }
}

/** Everything that is no resource: discovery, health, metrics, version. */
export function createPaths(parts: PathParts): RouteHandler {
  const { version, registry, readiness, log, routes = [], extras = [], live = [] } = parts
  const server = {
    version: version.gitVersion,
    paths: routes.flatMap(({ described }) => described ?? []),
    // Known only once the port is open, and asked for only then.
    get address() {
      return parts.address()
    },
  }
  return createPathRoutes([
    ...documentRoutes(server, { extras, live }),
    ...healthRoutes({
      livez: [ping],
      readyz: [ping, startupCheck(readiness), shutdownCheck(readiness.draining)],
      log,
    }),
    versionRoute(version),
    { ...versionRoute(version), path: '/version/', listed: false },
    metricsRoute(registry),
    ...routes,
  ])
}
