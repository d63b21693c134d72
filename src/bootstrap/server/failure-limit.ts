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
    'Attempts with bootstrap tokens that failed (wrong), and those of them that got 429 (limit)',
    ['reason'],
  )
  return {
    certificate: (signer, outcome) => certificates.with(signer, outcome).inc(),
    tokenFailed: () => attempts.with('wrong').inc(),
    tokenRefused: () => attempts.with('limit').inc(),
  }
}

const windowMs = 60_000
/** Pairs of address and token id that are counted at once; the oldest gives way. */
const maxCountedPairs = 10_000
/** Failures within a minute, of all addresses and tokens, that are counted and get a 401. */
const maxFailuresPerMinute = 6_000

interface Count {
  readonly since: number
  failures: number
}

/** A failed attempt with a token. There is no source for a token in a TokenReview. */
export interface Attempt {
  readonly source: string | undefined
  readonly id: string
}

/** What failures are limited by. */
export interface FailureLimitOptions {
  readonly clock: Clock
  /** Failures of one address with one token id; 0 for no limit. */
  readonly perMinute: number
  /** The part of an address that one party controls. */
  readonly bucketOf: (address: string) => string
  readonly metrics: Pick<DiscoveryMetrics, 'tokenFailed' | 'tokenRefused'>
}

/**
 * Limits failures with bootstrap tokens, by address and token id together and in all. It knows failures only: a
 * token is verified first, so one that verifies is accepted whatever other clients did.
 */
export class FailureLimit {
  readonly #options: FailureLimitOptions
  readonly #pairs = new Map<string, Count>()
  #all: Count = { since: 0, failures: 0 }

  constructor(options: FailureLimitOptions) {
    this.#options = options
  }

  /** Counts a failure. Throws 429 if there were too many before, else returns for a 401. */
  failed({ source, id }: Attempt): void {
    const { metrics, perMinute, bucketOf } = this.#options
    metrics.tokenFailed()
    if (source === undefined || perMinute === 0) return
    this.#all = this.#current(this.#all)
    if (this.#all.failures >= maxFailuresPerMinute) throw this.#refusal()
    this.#all.failures++
    const pair = this.#pair(`${bucketOf(source)} ${id}`)
    if (pair.failures >= perMinute) throw this.#refusal()
    pair.failures++
  }

  #refusal(): ApiError {
    this.#options.metrics.tokenRefused()
    return new ApiError(
      'TooManyRequests',
      'too many failures with bootstrap tokens, try again later',
      { details: { retryAfterSeconds: windowMs / 1000 } },
    )
  }

  /** The count itself, or an empty one when its minute is over. */
  #current(count: Count): Count {
    const now = this.#options.clock.monotonic()
    return now - count.since < windowMs ? count : { since: now, failures: 0 }
  }

  #pair(key: string): Count {
    const known = this.#pairs.get(key)
    const pair = this.#current(known ?? { since: Number.NEGATIVE_INFINITY, failures: 0 })
    if (pair === known) return pair
    this.#pairs.delete(key)
    this.#pairs.set(key, pair)
    const [oldest] = this.#pairs.keys()
    if (this.#pairs.size > maxCountedPairs && oldest !== undefined) this.#pairs.delete(oldest)
    return pair
  }
}
