import type { MetricsRegistry } from '../../core/index.ts'
import type { PacketTally } from '../link/index.ts'
import type { PacketTypeName } from '../protocol/index.ts'

const prefix = 'konnectivity_network_proxy_server_'
const latencyBuckets = [1e-6, 1e-5, 1e-4, 5e-3, 0.025, 0.1, 0.5, 2.5, 12.5]
const durationBuckets = [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400]
/** Those of Prometheus' Go client where nothing else is said. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Why a dial came to nothing, as upstream counts it. */
export type CountedDialFailure =
  | 'no_agent'
  | 'error_response'
  | 'send_rsp'
  | 'backend_close'
  | 'backend_dial_timeout'
  | 'frontend_close'

/** Takes measurements in seconds. */
export interface Observer {
  observe(seconds: number): void
}

/** What the metrics page asks for when it is shown. */
export interface ServerGauges {
  readonly proxyStreams: () => number
  readonly agentStreams: () => number
  readonly httpConnections: () => number
  readonly agents: () => number
  readonly agentsByStrategy: () => readonly { readonly strategy: string; readonly size: number }[]
  readonly pendingDials: () => number
  readonly establishedConnections: () => number
  /** Connections whose bytes from a client wait, because they do not leave for the agent as fast. */
  readonly fullFromClients: () => number
  /** The same for bytes from an agent. */
  readonly fullFromAgents: () => number
}

/** The metrics of a tunnel server under upstream's names. */
export class ServerMetrics {
  readonly #registry: MetricsRegistry
  readonly dialDuration: Observer
  readonly frontendWriteDuration: Observer
  readonly connectionDuration: Observer
  readonly culledLeases
  readonly leaseDeleteLatency
  readonly leaseDeletes
  readonly leaseListLatency
  readonly leaseLists
  readonly #dialFailures
  readonly #packets
  readonly #streamErrors

  constructor(registry: MetricsRegistry) {
    this.#registry = registry
    const histogram = (name: string, help: string, buckets: readonly number[]) =>
      registry.histogram(`${prefix}${name}`, help, { buckets }).with()
    const counter = (name: string, help: string, labels: readonly string[] = []) =>
      registry.counter(`${prefix}${name}`, help, labels)
    const byCode = (name: string, help: string) =>
      registry.histogram(`${prefix}${name}`, help, {
        labels: ['http_status_code'],
        buckets: defaultBuckets,
      })
    this.dialDuration = histogram(
      'dial_duration_seconds',
      'Time until a dial through an agent was answered.',
      latencyBuckets,
    )
    this.frontendWriteDuration = histogram(
      'frontend_write_duration_seconds',
      'Time until the answer to a dial had left for the front end.',
      latencyBuckets,
    )
    this.connectionDuration = histogram(
      'connection_duration_seconds',
      'How long tunnelled connections lasted.',
      durationBuckets,
    )
    this.#dialFailures = counter('dial_failure_count', 'Dials that failed, by reason.', ['reason'])
    this.#packets = counter('stream_packets_total', 'Packets, by segment and type.', [
      'segment',
      'packet_type',
    ])
    this.#streamErrors = counter(
      'stream_errors_total',
      'Streams that broke, by segment, gRPC code and packet type.',
      ['segment', 'code', 'packet_type'],
    )
    const leaseLabels = ['http_status_code', 'reason']
    this.culledLeases = counter('culled_leases_count', 'Expired leases that were removed.').with()
    this.leaseDeleteLatency = byCode('lease_delete_latency_seconds', 'Time of lease deletions.')
    this.leaseDeletes = counter('lease_delete_total', 'Lease deletions.', leaseLabels)
    this.leaseListLatency = byCode('lease_list_latency_seconds', 'Time of lease lists.')
    this.leaseLists = counter('lease_list_total', 'Lease lists.', leaseLabels)
  }

  /** Shows values that others keep. */
  observe(gauges: ServerGauges): void {
    const gauge = (name: string, help: string, value: () => number): void =>
      this.#registry.observed('gauge', `${prefix}${name}`, help, () => [{ value: value() }])
    this.#registry.observed(
      'gauge',
      `${prefix}grpc_connections`,
      'Open gRPC streams, by method.',
      () => [
        { labels: { service_method: 'Proxy' }, value: gauges.proxyStreams() },
        { labels: { service_method: 'Connect' }, value: gauges.agentStreams() },
      ],
    )
    gauge('http_connections', 'Open HTTP CONNECT connections.', gauges.httpConnections)
    gauge(
      'ready_backend_connections',
      'Connected agents. Deprecated: see ready_backends.',
      gauges.agents,
    )
    this.#registry.observed('gauge', `${prefix}ready_backends`, 'Connected agents.', () =>
      gauges
        .agentsByStrategy()
        .map(({ strategy, size }) => ({ labels: { proxy_strategy: strategy }, value: size })),
    )
    gauge('pending_backend_dials', 'Dials without an answer yet.', gauges.pendingDials)
    gauge('established_connections', 'Open tunnelled connections.', gauges.establishedConnections)
    this.#registry.observed(
      'gauge',
      `${prefix}full_receive_channels`,
      'Connections that are not read because what came by them does not leave as fast, by the side it came from.',
      () => [
        { labels: { service_method: 'Connect' }, value: gauges.fullFromAgents() },
        { labels: { service_method: 'Proxy' }, value: gauges.fullFromClients() },
      ],
    )
  }

  dialFailed(reason: CountedDialFailure): void {
    this.#dialFailures.with(reason).inc()
  }

  streamBroke(segment: 'from_client' | 'from_agent'): void {
    this.#streamErrors.with(segment, 'Unavailable', 'Unknown').inc()
  }

  /** Counts the packets of one side; finds its counters once, so that a packet costs an addition. */
  tally(side: 'client' | 'agent'): PacketTally {
    const countsOf = (segment: string) => {
      const count = (type: PacketTypeName) => this.#packets.with(segment, type)
      return {
        DIAL_REQ: count('DIAL_REQ'),
        DIAL_RSP: count('DIAL_RSP'),
        CLOSE_REQ: count('CLOSE_REQ'),
        CLOSE_RSP: count('CLOSE_RSP'),
        DATA: count('DATA'),
        DIAL_CLS: count('DIAL_CLS'),
        DRAIN: count('DRAIN'),
        CREDIT: count('CREDIT'),
        FIN: count('FIN'),
      } satisfies Record<PacketTypeName, { value: number }>
    }
    const from = countsOf(`from_${side}`)
    const to = countsOf(`to_${side}`)
    return {
      received: (type) => {
        from[type].value += 1
      },
      sent: (type) => {
        to[type].value += 1
      },
    }
  }
}
