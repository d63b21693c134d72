import type { MetricsRegistry } from '../../core/index.ts'
import type { Trigger } from './add-auth.ts'
import type { CutReason } from './session.ts'

/** What is counted of the proxy. */
export interface ProxyMetrics {
  cut(reason: CutReason): void
  limited(): void
  identified(trigger: Trigger): void
}

/** Adds the proxy's metrics to the page. */
export function proxyMetrics(registry: MetricsRegistry, sessions: () => number): ProxyMetrics {
  const cuts = registry.counter(
    'sallyport_addon_sessions_cut_total',
    'Proxied requests and tunnels that were ended before their time, by reason',
    ['reason'],
  )
  const limited = registry
    .counter('sallyport_addon_limited_total', 'Proxied requests refused by a limit of their user')
    .with()
  const identities = registry.counter(
    'sallyport_addon_identities_total',
    'Proxied requests that told an add-on their user, by what asked for it',
    ['trigger'],
  )
  registry.observed(
    'gauge',
    'sallyport_addon_sessions',
    'Proxied requests and tunnels under way',
    () => [{ value: sessions() }],
  )
  return {
    cut: (reason) => cuts.with(reason).inc(),
    limited: () => limited.inc(),
    identified: (trigger) => identities.with(trigger).inc(),
  }
}
