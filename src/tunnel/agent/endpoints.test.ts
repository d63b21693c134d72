import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AgentLab } from './agent-lab.suite.ts'
import { FakeLink } from './fake-link.suite.ts'
import type { TunnelAgent } from './tunnel-agent.ts'

let lab: AgentLab
let link: FakeLink

beforeEach(async () => {
  lab = await AgentLab.open()
  link = new FakeLink({ serverCounts: ['1'] })
})

afterEach(() => lab.close())

async function start(isConnected: boolean, ...argv: string[]): Promise<TunnelAgent> {
  const agent = await lab.agent(argv, {
    connect: () => (isConnected ? Promise.resolve(link) : Promise.reject(new Error('no'))),
  })
  await agent.start()
  if (isConnected) await agent.connected(AbortSignal.timeout(4_000))
  return agent
}

const health = (agent: TunnelAgent, path: string): Promise<Response> =>
  fetch(`http://127.0.0.1:${agent.ports.health}${path}`)

const admin = (agent: TunnelAgent, path: string): Promise<Response> =>
  fetch(`http://127.0.0.1:${agent.ports.admin}${path}`, { redirect: 'manual' })

describe('[TUN-F7, TUN-U9] health', () => {
  test.each([
    [true, '/healthz', 200, 'ok'],
    [false, '/healthz', 200, 'ok'],
    [true, '/readyz', 200, 'ok'],
    [true, '/ready', 200, 'ok'],
    [true, '/readyz?verbose', 200, '[+]ping ok\n[+]server-connected ok\ncheck passed\n'],
    [false, '/readyz', 503, '[+]ping ok\n[-]server-connected failed: no servers connected\n'],
    [false, '/ready', 503, '[+]ping ok\n[-]server-connected failed: no servers connected\n'],
    [true, '/else', 404, '404 page not found\n'],
    [true, '//', 404, '404 page not found\n'],
  ])('connected %s: %s is %i', async (isConnected, path, status, text) => {
    const answer = await health(await start(isConnected), path)
    expect([answer.status, await answer.text()]).toEqual([status, text])
  })

  test('only reading is allowed', async () => {
    const agent = await start(false)
    const url = `http://127.0.0.1:${agent.ports.health}/healthz`
    expect((await fetch(url, { method: 'POST' })).status).toBe(405)
  })
})

describe('[TUN-F8] admin', () => {
  test('/metrics leads to the health port', async () => {
    const agent = await start(false)
    const answer = await admin(agent, '/metrics?a=b')
    expect([answer.status, answer.headers.get('location')]).toEqual([
      301,
      `http://127.0.0.1:${agent.ports.health}/metrics?a=b`,
    ])
  })

  test.each([
    [[], 404],
    [['--enable-profiling'], 200],
  ])('profiles with %j: %i', async (argv, status) => {
    const agent = await start(false, ...argv)
    expect((await admin(agent, '/debug/pprof/')).status).toBe(status)
    expect((await admin(agent, '/debug/pprof/profile?seconds=0.01')).status).toBe(status)
  })
})

test('[TUN-F10] metrics have the names, types, labels and buckets of upstream', async () => {
  const agent = await start(true)
  await link.ask('127.0.0.1:bad')
  const page = await (await health(agent, '/metrics')).text()
  const prefix = 'konnectivity_network_proxy_agent_'
  const types = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [
    name?.replace(prefix, ''),
    type,
  ])
  expect(Object.fromEntries(types)).toEqual({
    dial_duration_seconds: 'histogram',
    endpoint_dial_failure_total: 'counter',
    server_connection_failure_count: 'counter',
    lease_lists_total: 'counter',
    lease_watches_total: 'counter',
    lease_list_latency_seconds: 'histogram',
    stream_packets_total: 'counter',
    stream_errors_total: 'counter',
    open_server_connections: 'gauge',
    known_server_count: 'gauge',
    open_endpoint_connections: 'gauge',
  })
  const bounds = [...page.matchAll(/dial_duration_seconds_bucket{le="([^"]+)"}/g)]
  expect(bounds.map(([, bound]) => bound)).toEqual([
    '0.005',
    '0.025',
    '0.1',
    '0.5',
    '2.5',
    '10',
    '30',
    '+Inf',
  ])
  for (const line of [
    'open_server_connections 1',
    'known_server_count 1',
    'open_endpoint_connections 0',
    'endpoint_dial_failure_total{reason="unknown"} 1',
    'stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"} 0',
    'stream_packets_total{segment="from_agent",packet_type="DATA"} 0',
  ]) {
    expect(page).toContain(`${prefix}${line}\n`)
  }
})

test('[TUN-F10] a broken link is counted', async () => {
  const agent = await start(true)
  link.close(new Error('cut'))
  await expect
    .poll(async () => (await health(agent, '/metrics')).text())
    .toContain('server_connection_failure_count{direction="from_server"} 1\n')
})
