import { exposition, type MetricsRegistry } from '../../core/metrics/index.ts'
import { type PathRoute, send, sendJson } from './routes.ts'

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
