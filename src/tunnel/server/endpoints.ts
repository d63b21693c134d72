import { exposition, type MetricsRegistry } from '../../core/index.ts'
import { HttpEndpoint, type PathHandler, sendText } from '../ports/http-endpoint.ts'
import { profilingPaths } from '../ports/profiling.ts'

const metricsPath =
  (metrics: MetricsRegistry): PathHandler =>
  (_request, response) =>
    sendText(response, 200, metrics.expose(), exposition)

const readiness = {
  ready: [200, 'ok'],
  'no-agent': [500, 'no connection to any proxy agent'],
  stopping: [500, 'the server is shutting down'],
} as const

/** `/healthz`, `/readyz`, its older name `/ready`, and `/metrics`, with upstream's words. */
export function healthEndpoint(
  state: () => 'ready' | 'no-agent' | 'stopping',
  metrics: MetricsRegistry,
): HttpEndpoint {
  const ready: PathHandler = (_request, response) => {
    const [status, text] = readiness[state()]
    sendText(response, status, text)
  }
  return new HttpEndpoint('health', {
    '/healthz': (_request, response) => sendText(response, 200, 'ok'),
    '/readyz': ready,
    '/ready': ready,
    '/metrics': metricsPath(metrics),
  })
}

/** `/metrics` where older set-ups look for it, and profiles if they are switched on. */
export const adminEndpoint = (isProfiling: boolean, metrics: MetricsRegistry): HttpEndpoint =>
  new HttpEndpoint('metrics', {
    '/metrics': metricsPath(metrics),
    ...(isProfiling && profilingPaths()),
  })
