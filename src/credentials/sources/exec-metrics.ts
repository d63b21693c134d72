import type { Clock } from '../../core/index.ts'
import type { MetricsRegistry } from '../../core/metrics/index.ts'
import type { CredentialObserver } from './credential-observer.ts'

const minute = 60
const hour = 60 * minute
const day = 24 * hour

/** From ten minutes, too often, to four years, too seldom. */
const ageBuckets = [
  10 * minute,
  30 * minute,
  hour,
  4 * hour,
  day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
  1_440 * day,
]

/** Counts what plugins do under the names that Kubernetes' own clients use. */
export function execMetrics(registry: MetricsRegistry, clock: Clock): CredentialObserver {
  const calls = registry.counter(
    'rest_client_exec_plugin_call_total',
    'Calls of exec plugins by exit code and outcome',
    ['code', 'call_status'],
  )
  const policyCalls = registry.counter(
    'rest_client_exec_plugin_policy_call_total',
    'Exec plugins that the plugin policy was asked about, by its answer',
    ['status'],
  )
  const ages = registry.histogram(
    'rest_client_exec_plugin_certificate_rotation_age',
    'Age in seconds of client certificates of exec plugins when they were replaced',
    { buckets: ageBuckets },
  )
  let earliestEnd = Number.POSITIVE_INFINITY
  registry.observed(
    'gauge',
    'rest_client_exec_plugin_ttl_seconds',
    'Seconds until the client certificate of an exec plugin expires; +Inf if there is none',
    () => [{ value: (earliestEnd - clock.now()) / 1_000 }],
  )
  return {
    notify: (event) => {
      if (event.type === 'run-end') calls.with(String(event.exitCode), event.status).inc()
      else if (event.type === 'allowed' || event.type === 'denied')
        policyCalls.with(event.type).inc()
      else if (event.type === 'fetched') earliestEnd = event.certificateEndsAt ?? earliestEnd
      else if (event.type === 'rotate' && event.certificateChanged)
        ages.with().observe(event.ageMs / 1_000)
    },
  }
}
