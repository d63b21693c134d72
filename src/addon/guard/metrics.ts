import { MetricsRegistry } from '../../core/index.ts'

interface Count {
  inc(): void
}

/** What the guard counts. */
export class GuardMetrics {
  readonly registry = new MetricsRegistry()
  readonly #requests = this.registry.counter(
    'sallyport_guard_requests_total',
    'Requests by status and reason; ok is what was let through',
    ['code', 'reason'],
  )
  readonly #duration = this.registry
    .histogram(
      'sallyport_guard_request_duration_seconds',
      'From the head of a request to its end',
      {
        buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
      },
    )
    .with()
  readonly #known = new Map<string, Count>()

  /** Counts a request that has ended. */
  note(status: number, reason: string, durationMs: number): void {
    const key = `${status} ${reason}`
    let count = this.#known.get(key)
    if (!count) {
      count = this.#requests.with(String(status), reason)
      // An add-on chooses its status, within three digits.
      this.#known.set(key, count)
    }
    count.inc()
    this.#duration.observe(durationMs / 1000)
  }

  /** Shows a number that somebody else keeps. */
  gauge(name: string, help: string, read: () => number): void {
    this.registry.observed('gauge', name, help, () => [{ value: read() }])
  }
}
