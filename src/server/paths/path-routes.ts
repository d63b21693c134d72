import {
  type ExtraResource,
  type ExtraSubresource,
  kindDefinitions,
  reviewResources,
} from '../../api/index.ts'
import type { Kind, Logger, RequestInfo } from '../../core/index.ts'
import type { MetricsRegistry } from '../../core/metrics/index.ts'
import type { RouteHandler } from '../pipeline-parts.ts'
import { documentRoutes } from './document-routes.ts'
import { type HealthCheck, healthRoutes, ping, shutdownCheck, Unwell } from './health.ts'
import { metricsRoute, type VersionInfo, versionRoute } from './plain-documents.ts'
import { createPathRoutes, type PathRoute } from './routes.ts'

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
