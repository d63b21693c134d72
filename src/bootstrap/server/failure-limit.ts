import { ApiError, type Clock, type MetricsRegistry } from '../../core/index.ts'

/** What has become of a request for a certificate. */
type CertificateOutcome = 'approved' | 'denied' | 'signed' | 'failed'

/** What is counted of joining. */
export interface DiscoveryMetrics {
  certificate(signer: string, outcome: CertificateOutcome): void
  tokenFailed(): void
  tokenRefused(): void
}

/** Adds the metrics of joining to the page. */
export function discoveryMetrics(registry: MetricsRegistry): DiscoveryMetrics {
  const certificates = registry.counter(
    'sallyport_certificate_requests_total',
    'Requests for certificates that the server has decided or signed, by signer and outcome',
    ['signer', 'outcome'],
  )
  const attempts = registry.counter(
    'sallyport_bootstrap_token_failures_total',
    'Attempts with bootstrap tokens that failed, or that were not looked at since too many had failed',
    ['reason'],
  )
  return {
    certificate: (signer, outcome) => certificates.with(signer, outcome).inc(),
    tokenFailed: () => attempts.with('wrong').inc(),
    tokenRefused: () => attempts.with('limit').inc(),
  }
}

const windowMs = 60_000
/** Whoever comes from more addresses pushes the oldest out. */
const mostKeys = 10_000

interface Count {
  readonly since: number
  failures: number
}

/** Who tries a token: from where, and which one. Unknown where somebody else asks about a token. */
export interface Attempt {
  readonly source: string | undefined
  readonly id: string
}

/**
 * Ends guessing: an address with too many failures within a minute is not listened to, right or
 * wrong. A token with too many is only refused to addresses that have failed themselves, so that
 * nobody can lock others out of a token whose id is public.
 */
export class FailureLimit {
  readonly #clock: Clock
  readonly #perMinute: number
  readonly #metrics: Pick<DiscoveryMetrics, 'tokenFailed' | 'tokenRefused'>
  readonly #counts = new Map<string, Count>()

  /** No limit at all for 0. */
  constructor(
    clock: Clock,
    perMinute: number,
    metrics: Pick<DiscoveryMetrics, 'tokenFailed' | 'tokenRefused'>,
  ) {
    this.#clock = clock
    this.#perMinute = perMinute
    this.#metrics = metrics
  }

  /** Throws 429 if this attempt is not to be looked at. */
  check({ source, id }: Attempt): void {
    if (source === undefined || this.#perMinute === 0) return
    const own = this.#failuresOf(`from ${source}`)
    const isRefused =
      own >= this.#perMinute || (own > 0 && this.#failuresOf(`of ${id}`) >= this.#perMinute)
    if (!isRefused) return
    this.#metrics.tokenRefused()
    throw new ApiError(
      'TooManyRequests',
      'too many failures with bootstrap tokens, try again later',
      {
        details: { retryAfterSeconds: windowMs / 1000 },
      },
    )
  }

  /** Takes in that an attempt has failed. */
  failed({ source, id }: Attempt): void {
    this.#metrics.tokenFailed()
    if (source === undefined || this.#perMinute === 0) return
    this.#count(`from ${source}`)
    this.#count(`of ${id}`)
  }

  #failuresOf(key: string): number {
    const count = this.#counts.get(key)
    return count && this.#clock.monotonic() - count.since < windowMs ? count.failures : 0
  }

  #count(key: string): void {
    const failures = this.#failuresOf(key) + 1
    const known = this.#counts.get(key)
    if (known && failures > 1) {
      known.failures = failures
      return
    }
    this.#counts.delete(key)
    this.#counts.set(key, { since: this.#clock.monotonic(), failures })
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > mostKeys && oldest !== undefined) this.#counts.delete(oldest)
  }
}
