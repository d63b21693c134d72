import type { RequestInfo } from '../../core/index.ts'
import type { Counter, Histogram, MetricsRegistry } from '../../core/metrics/index.ts'
import type { Exchange } from '../exchange.ts'

const labels = ['verb', 'group', 'version', 'resource', 'subresource', 'scope'] as const
// kube-apiserver's, and three finer ones in front: most of our answers take less than its first.
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
  readonly #monotonic: () => number
  readonly #isServed: (info: RequestInfo) => boolean
  readonly #totals: Counter
  readonly #durations: Histogram
  readonly #totalOf = new Map<string, Total>()
  readonly #durationOf = new Map<string, Duration>()

  constructor(
    registry: MetricsRegistry,
    options: {
      readonly clock: { monotonic(): number }
      /** Only resources and subresources that exist become labels: anybody can ask for any number of others. */
      readonly isServed: (info: RequestInfo) => boolean
    },
  ) {
    this.#monotonic = () => options.clock.monotonic()
    this.#isServed = options.isServed
    this.#totals = registry.counter(
      'apiserver_request_total',
      'Requests by what they were and how they ended.',
      [...labels, 'code'],
    )
    this.#durations = registry.histogram(
      'apiserver_request_duration_seconds',
      'Time from a request to its complete answer, watches and streams left out.',
      { labels, buckets },
    )
  }

  complete(exchange: Exchange): void {
    const { info, longRunning } = exchange
    const values =
      info.isResourceRequest && !this.#isServed(info) ? unknownOf(info) : valuesOf(info)
    const key = values.join(' ')
    this.#total(`${key} ${exchange.code}`, values, exchange.code).inc()
    if (longRunning) return
    this.#duration(key, values).observe((this.#monotonic() - exchange.startedAt) / 1_000)
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
