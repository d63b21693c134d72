import { describe, expect, test } from 'vitest'
import { localIdentity } from './agent-identity.ts'
import { AgentRegistry } from './agent-registry.ts'
import { type AgentSession, describeAgent } from './agent-session.ts'
import { FakeAgent } from './fake-agent.suite.ts'
import type { StrategyName } from './strategies.ts'

interface Order {
  readonly id: string
  readonly identifiers?: string
  readonly channels?: number
  readonly backlog?: number
  readonly draining?: boolean
}

function sessionOf(order: Order): AgentSession {
  const { id, identifiers = '', channels = 0, backlog = 0, draining = false } = order
  const link = new FakeAgent({ agentId: id, identifiers })
  Object.assign(link, { channelCount: channels, backlog, isDraining: draining })
  return { ...describeAgent(link.metadata), link, peer: id, identity: localIdentity(id) }
}

function registryOf(names: readonly StrategyName[], orders: readonly Order[], random = () => 0) {
  const registry = new AgentRegistry(names, { random })
  const sessions = orders.map((order) => sessionOf(order))
  for (const session of sessions) registry.add(session)
  const pick = (host: string, tried: readonly AgentSession[] = []) =>
    registry.pick(host, new Set(tried))?.agentId
  return { registry, sessions, pick }
}

const nodes = [
  { id: 'a', identifiers: 'ipv4=10.0.0.1&host=Node-A' },
  { id: 'b', identifiers: 'ipv6=fd00::2&cidr=10.1.0.0/16&cidr=fd00::/64' },
  { id: 'c', identifiers: 'cidr=10.1.2.0/24&default-route=true' },
]

describe('[TUN-W19] a strategy picks', () => {
  test.each<[string, StrategyName[], string, string | undefined]>([
    ['by IPv4 address', ['destHost'], '10.0.0.1', 'a'],
    ['by host name', ['destHost'], 'node-a', 'a'],
    ['by IPv6 address', ['destHost'], 'fd00::2', 'b'],
    ['nobody for a host that is not named', ['destHost'], '10.0.0.9', undefined],
    ['the default route', ['defaultRoute'], 'anything', 'c'],
    ['the only range around an address', ['cidr'], '10.1.9.9', 'b'],
    ['the narrowest range around an address', ['cidr'], '10.1.2.9', 'c'],
    ['a range of IPv6 addresses', ['cidr'], 'fd00::99', 'b'],
    ['a range for an IPv4 address written as IPv6', ['cidr'], '::ffff:10.1.2.9', 'c'],
    ['no range around a name', ['cidr'], 'node-a', undefined],
    ['no range elsewhere', ['cidr'], '192.168.0.1', undefined],
    ['the next strategy when the first knows nobody', ['destHost', 'defaultRoute'], 'x', 'c'],
    ['the first strategy that knows one', ['destHost', 'defaultRoute'], '10.0.0.1', 'a'],
    ['nobody where no strategy fits', ['destHost', 'cidr'], 'x', undefined],
  ])('%s', (_name, strategies, host, expected) => {
    expect(registryOf(strategies, nodes).pick(host)).toBe(expected)
  })

  test('[TUN-P9] any agent by chance', () => {
    const { registry } = registryOf(['default'], nodes, Math.random)
    const seen = new Set(Array.from({ length: 200 }, () => registry.pick('x', new Set())?.agentId))
    expect([...seen].toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(['a', 'b', 'c'])
  })

  test('the agent with the fewest connections, then with the least waiting', () => {
    const agents = [
      { id: 'busy', channels: 5 },
      { id: 'backlog', channels: 1, backlog: 100 },
      { id: 'free', channels: 1, backlog: 10 },
    ]
    expect(registryOf(['least-loaded'], agents).pick('x')).toBe('free')
  })

  test('[TUN-P9] the less busy of two agents that name the same host', () => {
    const agents = [
      { id: 'busy', identifiers: 'host=n', channels: 2 },
      { id: 'free', identifiers: 'host=n' },
    ]
    expect(registryOf(['destHost'], agents).pick('n')).toBe('free')
  })
})

describe('[TUN-U11, TUN-W13] an agent that drains', () => {
  test.each<StrategyName>(['default', 'destHost', 'defaultRoute', 'cidr', 'least-loaded'])(
    'is left alone by %s while there is another',
    (name) => {
      const identifiers = 'host=n&ipv4=10.0.0.1&cidr=10.0.0.0/8&default-route=true'
      const agents = [
        { id: 'going', identifiers, draining: true },
        { id: 'staying', identifiers, channels: 99 },
      ]
      const { pick } = registryOf([name], agents)
      expect(Array.from({ length: 20 }, () => pick('10.0.0.1'))).toEqual(
        Array.from({ length: 20 }, () => 'staying'),
      )
    },
  )

  test('is the last resort', () => {
    expect(registryOf(['default'], [{ id: 'going', draining: true }]).pick('x')).toBe('going')
  })
})

test('an agent that was tried is not picked again', () => {
  const { pick, sessions } = registryOf(['default'], [{ id: 'a' }, { id: 'b' }])
  expect(pick('x', sessions.slice(0, 1))).toBe('b')
  expect(pick('x', sessions)).toBeUndefined()
})

test('[TUN-U11, TUN-P6] two sessions of one agent ID live and go apart', () => {
  const { registry, sessions, pick } = registryOf(
    ['default', 'destHost'],
    [
      { id: 'same', identifiers: 'host=n' },
      { id: 'same', identifiers: 'host=n' },
    ],
  )
  const [first] = sessions
  expect(registry.sizes()).toEqual([
    { strategy: 'default', size: 1 },
    { strategy: 'destHost', size: 2 },
  ])
  registry.remove(first!)
  expect(pick('n')).toBe('same')
  expect(registry.pick('n', new Set())).toBe(sessions[1])
  registry.remove(sessions[1]!)
  expect(registry.isReady).toBe(false)
  expect(registry.sizes().map(({ size }) => size)).toEqual([0, 0])
})

test('readiness is that of the first strategy', () => {
  const { registry } = registryOf(['destHost', 'default'], [{ id: 'a' }])
  expect(registry.isReady).toBe(false)
  registry.add(sessionOf({ id: 'b', identifiers: 'host=n' }))
  expect(registry.isReady).toBe(true)
})
