import { type Counter, MetricsRegistry } from '../../core/index.ts'
import type { LeaseAnswer } from '../lease-validity.ts'
import type { PacketTally } from '../link/index.ts'
import { type PacketTypeName, packetType } from '../protocol/index.ts'

const prefix = 'konnectivity_network_proxy_agent_'
const latencyBuckets = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30]

/** Numbers that others keep, asked for when the page is shown. */
interface Gauges {
  openServerConnections(): number
  knownServerCount(): number
  openEndpointConnections(): number
}

/** The agent's metrics, by Konnectivity's names. */
export class AgentMetrics {
  readonly registry = new MetricsRegistry()
  readonly #dialDuration
  readonly #dialFailures
  readonly #serverFailures
  readonly #leaseLists
  readonly #leaseWatches
  readonly #leaseLatency
  readonly #streamErrors
  /** Hears of the packets of every link. */
  readonly packets: PacketTally

  constructor() {
    const { registry } = this
    this.#dialDuration = registry.histogram(
      `${prefix}dial_duration_seconds`,
      'Time that connections to targets took',
      { buckets: latencyBuckets },
    )
    this.#dialDuration.with()
    this.#dialFailures = registry.counter(
      `${prefix}endpoint_dial_failure_total`,
      'Connections to targets that failed, by reason',
      ['reason'],
    )
    this.#serverFailures = registry.counter(
      `${prefix}server_connection_failure_count`,
      'Links to servers that broke, by direction; deprecated for stream_errors_total',
      ['direction'],
    )
    this.#leaseLists = registry.counter(
      `${prefix}lease_lists_total`,
      'Lists of the Leases of servers, by answer',
      ['http_response_code', 'reason'],
    )
    this.#leaseWatches = registry.counter(
      `${prefix}lease_watches_total`,
      'Watches of the Leases of servers, by answer',
      ['http_response_code', 'reason'],
    )
    this.#leaseLatency = registry.histogram(
      `${prefix}lease_list_latency_seconds`,
      'Time that lists of the Leases of servers took',
      { labels: ['http_response_code'], buckets: latencyBuckets },
    )
    this.packets = packetTally(
      registry.counter(`${prefix}stream_packets_total`, 'Packets, by segment and type', [
        'segment',
        'packet_type',
      ]),
    )
    this.#streamErrors = registry.counter(
      `${prefix}stream_errors_total`,
      'Errors of streams, by segment, gRPC code and packet type',
      ['segment', 'code', 'packet_type'],
    )
  }

  observe(gauges: Gauges): void {
    const gauge = (name: string, help: string, collect: () => number): void =>
      this.registry.observed('gauge', `${prefix}${name}`, help, () => [{ value: collect() }])
    gauge('open_server_connections', 'Servers that are connected', () =>
      gauges.openServerConnections(),
    )
    gauge('known_server_count', 'Servers that the agent wants to be connected to', () =>
      gauges.knownServerCount(),
    )
    gauge('open_endpoint_connections', 'Connections to targets that are open', () =>
      gauges.openEndpointConnections(),
    )
  }

  dialled(seconds: number): void {
    this.#dialDuration.with().observe(seconds)
  }

  dialFailed(reason: 'timeout' | 'unknown'): void {
    this.#dialFailures.with(reason).inc()
  }

  /** A link that stood ended with an error. */
  linkBroke(): void {
    this.#serverFailures.with('from_server').inc()
    this.#streamErrors.with('to_agent', 'Unavailable', 'Unknown').inc()
  }

  leasesListed(answer: LeaseAnswer, seconds: number): void {
    this.#leaseLists.with(String(answer.code), answer.reason).inc()
    this.#leaseLatency.with(String(answer.code)).observe(seconds)
  }

  leasesWatched(answer: LeaseAnswer): void {
    this.#leaseWatches.with(String(answer.code), answer.reason).inc()
  }
}

type Count = ReturnType<Counter['with']>

/** Packets are counted by the million, so every counter is looked up once. */
function packetTally(counter: Counter): PacketTally {
  const byType = (segment: string): Record<string, Count> => {
    const found: Record<string, Count> = {}
    for (const type of Object.keys(packetType)) found[type] = counter.with(segment, type)
    return found
  }
  const received = byType('to_agent')
  const sent = byType('from_agent')
  return {
    received: (type: PacketTypeName) => received[type]?.inc(),
    sent: (type: PacketTypeName) => sent[type]?.inc(),
  }
}
