import type { MetricsRegistry } from '../../core/metrics/index.ts'

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
