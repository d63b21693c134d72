import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MetricsRegistry, systemClock } from '../../core/index.ts'
import { DialFailed } from '../link/index.ts'
import { portOf } from '../ports/listen.ts'
import { localIdentity } from './agent-identity.ts'
import { AgentRegistry, NoAgentAvailable } from './agent-registry.ts'
import { describeAgent } from './agent-session.ts'
import { DialRouter, hostOf } from './dial-router.ts'
import { FakeAgent, fakeHub } from './fake-agent.suite.ts'
import { ServerMetrics } from './metrics.ts'

const never = new AbortController().signal
let target: Server
let address: string

beforeEach(async () => {
  target = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(target, 'listening')
  address = `127.0.0.1:${portOf(target)}`
})
afterEach(() => {
  target.close()
})

test.each([
  ['10.0.0.1:443', '10.0.0.1'],
  ['[FD00::1]:443', 'fd00::1'],
  ['Node-A:10250', 'node-a'],
  ['odd', 'odd'],
  ['a b:x', 'a b'],
])('the host of %s is %s', (text, host) => {
  expect(hostOf(text)).toBe(host)
})

test('[TUN-W8] without an agent a dial fails at once, with the words that clients know', async () => {
  const { hub, registry } = fakeHub()
  await expect(hub.open(address, never)).rejects.toThrow(NoAgentAvailable)
  await expect(hub.open(address, never)).rejects.toThrow('No agent available')
  expect(registry.expose()).toContain('dial_failure_count{reason="no_agent"} 2\n')
})

test('[TUN-P4] a dial whose agent is lost goes to another one', async () => {
  const { hub, registry } = fakeHub({ strategies: ['least-loaded'] })
  const silent = new FakeAgent({ agentId: 'first', isSilent: true })
  const second = new FakeAgent({ agentId: 'second' })
  hub.attachAgent(silent)
  hub.attachAgent(second)
  const opening = hub.open(address, never)
  expect(hub.pendingDials).toBe(1)
  silent.lose()
  const channel = await opening
  expect(second.dialled).toEqual([address])
  channel.start({ data() {}, finished() {}, drained() {}, closed() {} })
  channel.close()
  expect(hub.pendingDials).toBe(0)
  expect(registry.expose()).toContain('dial_failure_count{reason="backend_close"} 1\n')
  expect(hub.agentCount).toBe(1)
})

test('[TUN-P4] a dial whose last agent is lost fails', async () => {
  const { hub } = fakeHub()
  const silent = new FakeAgent({ isSilent: true })
  hub.attachAgent(silent)
  const opening = hub.open(address, never)
  silent.lose()
  await expect(opening).rejects.toMatchObject({ reason: 'link-lost' })
  expect([hub.pendingDials, silent.pendingDialCount]).toEqual([0, 0])
})

test('a target that refuses one agent is not asked for by another', async () => {
  const { hub, registry } = fakeHub({ strategies: ['least-loaded'] })
  const first = new FakeAgent({ agentId: 'first', refusal: 'connection refused' })
  const second = new FakeAgent({ agentId: 'second' })
  hub.attachAgent(first)
  hub.attachAgent(second)
  await expect(hub.open(address, never)).rejects.toThrow('connection refused')
  expect(second.dialled).toEqual([])
  expect(registry.expose()).toContain('dial_failure_count{reason="error_response"} 1\n')
})

test('[TUN-P3, TUN-F15] an agent that does not answer is given up at the deadline', async () => {
  const { hub, registry } = fakeHub({ dialTimeoutMs: 20 })
  hub.attachAgent(new FakeAgent({ isSilent: true }))
  await expect(hub.open(address, never)).rejects.toMatchObject({ reason: 'timeout' })
  expect(hub.pendingDials).toBe(0)
  expect(registry.expose()).toContain('dial_failure_count{reason="backend_dial_timeout"} 1\n')
})

test('[TUN-P4] a dial that an agent leaves unanswered goes to another one, as do the next', async () => {
  const registry = new AgentRegistry(['least-loaded'])
  const router = new DialRouter({
    registry,
    metrics: new ServerMetrics(new MetricsRegistry()),
    clock: systemClock,
    timeoutMs: 5_000,
    attemptMs: 20,
  })
  const stuck = new FakeAgent({ agentId: 'stuck', isSilent: true })
  const well = new FakeAgent({ agentId: 'well' })
  for (const link of [stuck, well])
    registry.add({
      ...describeAgent(link.metadata),
      link,
      peer: 'node',
      identity: localIdentity('node'),
    })
  for (const round of [1, 2, 3]) {
    const channel = await router.open(address, never)
    channel.start({ data() {}, finished() {}, drained() {}, closed() {} })
    expect([stuck.dialled.length, well.dialled.length]).toEqual([1, round])
  }
  well.close()
})

test('a dial that its client gives up is given up', async () => {
  const { hub, registry } = fakeHub()
  const agent = new FakeAgent({ isSilent: true })
  hub.attachAgent(agent)
  const client = new AbortController()
  const opening = hub.open(address, client.signal)
  client.abort()
  await expect(opening).rejects.toThrow(DialFailed)
  expect(agent.pendingDialCount).toBe(0)
  expect(registry.expose()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
})

test('a server in the same process dials with the Dialer and talks over a stream', async () => {
  const { hub, registry } = fakeHub()
  hub.attachAgent(new FakeAgent())
  const stream = await hub.dialer.dial({ host: '127.0.0.1', port: portOf(target) }, never)
  expect(hub.established).toBe(1)
  stream.end('hello')
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  expect(Buffer.concat(chunks).toString()).toBe('hello')
  if (!stream.closed) await once(stream, 'close')
  expect(hub.established).toBe(0)
  expect(registry.expose()).toContain('connection_duration_seconds_count 1\n')
})
