import { expect, test } from 'vitest'
import { MetricsRegistry } from '../../core/index.ts'
import { type CountedDialFailure, ServerMetrics } from './metrics.ts'

const prefix = 'konnectivity_network_proxy_server_'

function pageOf(use: (metrics: ServerMetrics) => void = () => {}): string {
  const registry = new MetricsRegistry()
  const metrics = new ServerMetrics(registry)
  metrics.observe({
    proxyStreams: () => 1,
    agentStreams: () => 2,
    httpConnections: () => 3,
    agents: () => 4,
    agentsByStrategy: () => [{ strategy: 'destHost', size: 5 }],
    pendingDials: () => 6,
    establishedConnections: () => 7,
    fullFromClients: () => 8,
    fullFromAgents: () => 9,
  })
  use(metrics)
  return registry.expose()
}

test.each([
  ['dial_duration_seconds', 'histogram'],
  ['frontend_write_duration_seconds', 'histogram'],
  ['connection_duration_seconds', 'histogram'],
  ['grpc_connections', 'gauge'],
  ['http_connections', 'gauge'],
  ['ready_backend_connections', 'gauge'],
  ['ready_backends', 'gauge'],
  ['pending_backend_dials', 'gauge'],
  ['established_connections', 'gauge'],
  ['full_receive_channels', 'gauge'],
  ['dial_failure_count', 'counter'],
  ['stream_packets_total', 'counter'],
  ['stream_errors_total', 'counter'],
  ['culled_leases_count', 'counter'],
  ['lease_delete_latency_seconds', 'histogram'],
  ['lease_delete_total', 'counter'],
  ['lease_list_latency_seconds', 'histogram'],
  ['lease_list_total', 'counter'],
])('[TUN-F9] there is %s, a %s', (name, type) => {
  expect(pageOf()).toContain(`# TYPE ${prefix}${name} ${type}\n`)
})

test.each([
  'grpc_connections{service_method="Proxy"} 1',
  'grpc_connections{service_method="Connect"} 2',
  'http_connections 3',
  'ready_backend_connections 4',
  'ready_backends{proxy_strategy="destHost"} 5',
  'pending_backend_dials 6',
  'established_connections 7',
  'full_receive_channels{service_method="Proxy"} 8',
  'full_receive_channels{service_method="Connect"} 9',
])('[TUN-F9] the page shows %s', (line) => {
  expect(pageOf()).toContain(`${prefix}${line}\n`)
})

test.each([
  ['dial_duration_seconds', [0.000001, 0.00001, 0.0001, 0.005, 0.025, 0.1, 0.5, 2.5, 12.5]],
  ['connection_duration_seconds', [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 14400, 43200, 86400]],
])('[TUN-F9] %s has upstream’s buckets', (name, bounds) => {
  const found = [...pageOf().matchAll(new RegExp(`${prefix}${name}_bucket{le="([^"+]+)"}`, 'g'))]
  expect(found.map(([, bound]) => Number(bound))).toEqual(bounds)
})

test.each<CountedDialFailure>([
  'no_agent',
  'error_response',
  'send_rsp',
  'backend_close',
  'backend_dial_timeout',
  'frontend_close',
])('[TUN-F9] a failed dial is counted as %s', (reason) => {
  const page = pageOf((metrics) => metrics.dialFailed(reason))
  expect(page).toContain(`${prefix}dial_failure_count{reason="${reason}"} 1\n`)
})

test('[TUN-F9] packets and broken streams are counted by segment', () => {
  const page = pageOf((metrics) => {
    const agent = metrics.tally('agent')
    agent.received('DATA')
    agent.received('DATA')
    agent.sent('DIAL_REQ')
    metrics.tally('client').sent('CLOSE_RSP')
    metrics.streamBroke('from_agent')
  })
  for (const line of [
    'stream_packets_total{segment="from_agent",packet_type="DATA"} 2',
    'stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"} 1',
    'stream_packets_total{segment="to_client",packet_type="CLOSE_RSP"} 1',
    'stream_errors_total{segment="from_agent",code="Unavailable",packet_type="Unknown"} 1',
  ]) {
    expect(page).toContain(`${prefix}${line}\n`)
  }
})
