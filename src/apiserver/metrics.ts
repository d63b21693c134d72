import { monitorEventLoopDelay } from 'node:perf_hooks'
import { kindDefinitions, type QuotaStore, reviewResources } from '../api/index.ts'
import type {
  Clock,
  Counter,
  Histogram,
  Kind,
  MetricsRegistry,
  RequestInfo,
} from '../core/index.ts'
import type { AuditRecorder, AuditSink } from './audit/recorder.ts'
import type { PoolName } from './fairness/fair-queue.ts'
import type { Fairness } from './fairness/fairness.ts'
import type { ConnectionGate } from './pipeline/connection-gate.ts'
import type { Exchange } from './pipeline/exchange.ts'

const labels = ['verb', 'group', 'version', 'resource', 'subresource', 'scope'] as const
// kube-apiserver's, and three finer ones in front: most of our responses take less than its first.
const buckets = [
  0.0001, 0.0005, 0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6,
  8, 10, 15, 20, 30, 45, 60,
]

const verbLabels: ReadonlyMap<string, string> = new Map(
  Object.entries({
    get: 'GET',
    list: 'LIST',
    watch: 'WATCH',
    create: 'POST',
    update: 'PUT',
    patch: 'PATCH',
    delete: 'DELETE',
    deletecollection: 'DELETECOLLECTION',
    post: 'POST',
    put: 'PUT',
    head: 'HEAD',
    options: 'OPTIONS',
  }),
)

type Total = ReturnType<Counter['with']>
type Duration = ReturnType<Histogram['with']>

/** Counts requests and how long they took, under kube-apiserver's names. */
export class RequestMetrics {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** As `group/version/resource/subresource`. Others do not become labels: clients can request any number of them. */
  readonly #served: ReadonlySet<string>
  readonly #totals: Counter
  readonly #durations: Histogram
  readonly #totalOf = new Map<string, Total>()
  readonly #durationOf = new Map<string, Duration>()

  constructor(
    registry: MetricsRegistry,
    clock: Pick<Clock, 'monotonic'>,
    /** Resources and subresources of features, as `group/version/resource/subresource`. */
    ofFeatures: Iterable<string> = [],
  ) {
    this.#clock = clock
    this.#served = new Set([...servedPaths(), ...ofFeatures])
    this.#totals = registry.counter(
      'apiserver_request_total',
      'Requests by what they were and how they ended.',
      [...labels, 'code'],
    )
    this.#durations = registry.histogram(
      'apiserver_request_duration_seconds',
      'Time from a request to its complete response, without watches and streams.',
      { labels, buckets },
    )
  }

  complete(exchange: Exchange): void {
    const { info, longRunning } = exchange
    const values = this.#isKnown(info) ? valuesOf(info) : unknownOf(info)
    const key = values.join(' ')
    this.#total(`${key} ${exchange.code}`, values, exchange.code).inc()
    if (longRunning) return
    this.#duration(key, values).observe((this.#clock.monotonic() - exchange.startedAt) / 1_000)
  }

  #isKnown({ isResourceRequest, group, version, resource, subresource }: RequestInfo): boolean {
    return !isResourceRequest || this.#served.has(`${group}/${version}/${resource}/${subresource}`)
  }

  #total(key: string, values: readonly string[], code: number): Total {
    let total = this.#totalOf.get(key)
    if (total === undefined) {
      total = this.#totals.with(...values, String(code))
      this.#totalOf.set(key, total)
    }
    return total
  }

  #duration(key: string, values: readonly string[]): Duration {
    let duration = this.#durationOf.get(key)
    if (duration === undefined) {
      duration = this.#durations.with(...values)
      this.#durationOf.set(key, duration)
    }
    return duration
  }
}

function servedPaths(): string[] {
  const path = ({ group, version, resource }: Kind, subresource = ''): string =>
    `${group}/${version}/${resource}/${subresource}`
  return [
    ...kindDefinitions.flatMap(({ kind, subresources }) => [
      path(kind),
      ...subresources.map(({ name }) => path(kind, name)),
    ]),
    ...reviewResources.map((kind) => path(kind)),
  ]
}

function valuesOf(info: RequestInfo): string[] {
  const verb = verbLabels.get(info.verb) ?? 'other'
  return [verb, info.group, info.version, info.resource, info.subresource, scopeOf(info)]
}

const unknownOf = (info: RequestInfo): string[] => [
  verbLabels.get(info.verb) ?? 'other',
  '',
  '',
  '',
  '',
  '',
]

function scopeOf(info: RequestInfo): string {
  if (!info.isResourceRequest) return ''
  if (info.name !== '' || info.verb === 'create') return 'resource'
  return info.namespace === '' ? 'cluster' : 'namespace'
}

/** Numbers of the process; the command line passes them in. */
export interface ProcessStats {
  /** CPU time used so far, user and system together. */
  cpuSeconds(): number
  residentBytes(): number
  heapBytes(): number
  /** `undefined` where the system does not support it. */
  openFileDescriptors(): number | undefined
  /** Epoch seconds. */
  readonly startTimeSeconds: number
}

/** Exposes the process under the names that Prometheus dashboards expect. */
export function addProcessMetrics(registry: MetricsRegistry, stats: ProcessStats): void {
  const gauge = (name: string, help: string, read: () => number | undefined): void =>
    registry.observed('gauge', name, help, () => {
      const value = read()
      return value === undefined ? [] : [{ value }]
    })
  registry.observed('counter', 'process_cpu_seconds_total', 'CPU time used.', () => [
    { value: stats.cpuSeconds() },
  ])
  gauge('process_resident_memory_bytes', 'Memory in use.', () => stats.residentBytes())
  gauge('process_open_fds', 'Open file descriptors.', () => stats.openFileDescriptors())
  gauge('process_start_time_seconds', 'Start of the process.', () => stats.startTimeSeconds)
  gauge('nodejs_heap_size_used_bytes', 'Memory of JavaScript objects.', () => stats.heapBytes())
}

/** Measures the delay of the event loop; returns how to stop that. */
export function addEventLoopMetrics(registry: MetricsRegistry): () => void {
  const delay = monitorEventLoopDelay({ resolution: 50 })
  delay.enable()
  registry.observed(
    'gauge',
    'nodejs_eventloop_lag_seconds',
    'Delay of the event loop since the metrics were last read.',
    () => {
      const samples = [0.5, 0.9, 0.99].map((quantile) => ({
        labels: { quantile: String(quantile) },
        value: delay.percentile(quantile * 100) / 1e9,
      }))
      delay.reset()
      return samples
    },
  )
  return () => void delay.disable()
}

/** The components of the server that count. */
export interface CountingComponents {
  readonly fairness: Fairness
  readonly pipeline: { readonly longRunning: number }
  readonly audit: AuditRecorder
  readonly auditSink: AuditSink
  readonly connections: ConnectionGate
}

/** Exposes the load of the server, under kube-apiserver's names where it has one. */
export function addServerMetrics(registry: MetricsRegistry, components: CountingComponents): void {
  const { fairness, pipeline, audit, auditSink, connections } = components
  const byKind = (kinds: readonly PoolName[], read: (kind: PoolName) => number) => () =>
    kinds.map((kind) => ({ labels: { request_kind: kind }, value: read(kind) }))
  const queued = ['readOnly', 'mutating'] as const
  registry.observed(
    'gauge',
    'apiserver_current_inflight_requests',
    'Requests under way.',
    byKind(queued, (kind) => fairness.running(kind)),
  )
  registry.observed(
    'gauge',
    'apiserver_current_inqueue_requests',
    'Requests in the queue.',
    byKind(queued, (kind) => fairness.queued(kind)),
  )
  registry.observed(
    'counter',
    'sallyport_refused_requests_total',
    'Requests rejected because there were too many.',
    byKind([...queued, 'longRunning'], (kind) => fairness.rejected(kind)),
  )
  const single = (type: 'counter' | 'gauge', name: string, help: string, read: () => number) =>
    registry.observed(type, name, help, () => [{ value: read() }])
  single(
    'gauge',
    'apiserver_longrunning_requests',
    'Open watches and streams.',
    () => pipeline.longRunning,
  )
  single('counter', 'apiserver_audit_event_total', 'Audit events.', () => audit.events)
  single('counter', 'apiserver_audit_error_total', 'Audit events lost.', () => auditSink.dropped)
  single('gauge', 'sallyport_open_connections', 'Open connections.', () => connections.open)
  single(
    'gauge',
    'sallyport_unauthenticated_connections',
    'Open connections on which no request has proven an identity.',
    () => connections.unauthenticated,
  )
  registry.observed(
    'gauge',
    'sallyport_held_bytes',
    'Bytes of bodies that are being received and of responses that are not read yet.',
    () => fairness.held().map(({ level, bytes }) => ({ labels: { level }, value: bytes })),
  )
  registry.observed(
    'counter',
    'sallyport_cut_requests_total',
    'Requests ended because too many bytes waited for slow clients.',
    () => fairness.held().map(({ level, disconnected: value }) => ({ labels: { level }, value })),
  )
  single(
    'counter',
    'sallyport_dropped_connections_total',
    'Connections closed because there were too many.',
    () => connections.dropped,
  )
}

/** Exposes usage and limits of the store, and rejected writes. */
export function addQuotaMetrics(registry: MetricsRegistry, quota: QuotaStore): void {
  const gauge = (name: string, help: string, read: () => number) =>
    registry.observed('gauge', name, help, () => [{ labels: {}, value: read() }])
  gauge('sallyport_store_objects', 'Objects in the store.', () => quota.usage().used.objects)
  gauge('sallyport_store_bytes', 'Bytes of objects in the store.', () => quota.usage().used.bytes)
  gauge(
    'sallyport_store_max_objects',
    'Limit of objects in the store.',
    () => quota.usage().max.objects,
  )
  gauge('sallyport_store_max_bytes', 'Limit of bytes in the store.', () => quota.usage().max.bytes)
  registry.observed(
    'counter',
    'sallyport_quota_refusals_total',
    'Writes rejected because they exceeded a limit, by limit.',
    () => Object.entries(quota.refusals).map(([limit, value]) => ({ labels: { limit }, value })),
  )
}
