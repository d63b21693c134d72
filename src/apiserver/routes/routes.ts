import {
  ApiDocuments,
  type ExtraResource,
  type ExtraSubresource,
  kindDefinitions,
  reviewResources,
  type ServerFacts,
} from '../../api/index.ts'
import { exposition, type Logger, type MetricsRegistry, notServed } from '../../core/index.ts'
import type { RouteHandler } from '../pipeline/types.ts'
import { type HealthCheck, HealthCheckFailed, healthRoutes, ping, shutdownCheck } from './health.ts'
import { type PathRoute, PathRoutes, send, sendJson } from './route.ts'

const header = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.join(',')

/** API discovery and OpenAPI. */
function documentRoutes(
  server: ServerFacts,
  { subresources: extras, resources: live }: Pick<PathDeps, 'subresources' | 'resources'>,
): PathRoute[] {
  const documents = new ApiDocuments(
    { kinds: kindDefinitions, reviews: reviewResources, extras, live },
    server,
  )
  const handle: RouteHandler = ({ request, info }, response) => {
    const { headers } = request
    const document = documents.answer({
      path: info.path,
      query: info.query,
      accept: headers.accept,
      acceptEncoding: header(headers['accept-encoding']),
      ifNoneMatch: headers['if-none-match'],
    })
    if (!document) throw notServed()
    const { status, headers: fields, body } = document
    response.writeHead(status, { ...fields, 'Content-Length': body.length })
    response.end(body)
  }
  return documents.paths.flatMap((path) => [
    { path, handle },
    { path: `${path}/`, handle, listed: false },
  ])
}

/** The body of `/version`; the fields are Kubernetes'. */
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

/** What non-resource paths are served from. */
export interface PathDeps {
  readonly version: VersionInfo
  readonly metrics: MetricsRegistry
  readonly readiness: { readonly ready: boolean; readonly draining: AbortSignal }
  readonly log: Logger
  /** `host:port` that members of the cluster use; read when it is needed, once the port is open. */
  readonly address: () => string
  /** Routes, subresources and resources of features. */
  readonly routes: readonly PathRoute[]
  readonly subresources: readonly ExtraSubresource[]
  readonly resources: readonly ExtraResource[]
}

function startupCheck(readiness: PathDeps['readiness']): HealthCheck {
  return {
    name: 'poststarthook/start-controllers',
    check() {
      if (!readiness.ready) throw new HealthCheckFailed('the server is still starting')
    },
  }
}

/** All non-resource paths: discovery, health, metrics, version. */
export function createPaths(deps: PathDeps): PathRoutes {
  const { version, metrics, readiness, log, routes } = deps
  const server = {
    version: version.gitVersion,
    paths: routes.flatMap(({ described }) => described ?? []),
    get address() {
      return deps.address()
    },
  }
  return new PathRoutes([
    ...documentRoutes(server, deps),
    ...healthRoutes({
      livez: [ping],
      readyz: [ping, startupCheck(readiness), shutdownCheck(readiness.draining)],
      log,
    }),
    versionRoute(version),
    { ...versionRoute(version), path: '/version/', listed: false },
    metricsRoute(metrics),
    ...routes,
  ])
}
