import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import {
  type ClusterView,
  type KubeObject,
  type Logger,
  silentLogger,
  systemClock,
} from '../../core/index.ts'
import { defaultReservedMs, NodeCheck } from './agent-claims.ts'
import { type AgentIdentity, identityOfToken } from './agent-identity.ts'
import { describeAgent } from './agent-session.ts'
import { FakeAgent, fakeHub } from './fake-agent.suite.ts'
import type { TunnelHub } from './hub.ts'
import { NodeRoutes } from './node-routes.ts'
import type { StrategyName } from './strategies.ts'

const signal = new AbortController().signal

const nodeIdentity = (nodeName: string): AgentIdentity => ({
  key: `certificate CN=system:node:${nodeName}`,
  user: { username: `system:node:${nodeName}`, groups: ['system:nodes'] },
  nodeName,
  fields: { certificate: `O=system:nodes,CN=system:node:${nodeName}`, serial: '01' },
})

/** Connects an agent that only notes what it is asked for. */
function attach(
  hub: TunnelHub,
  identity: AgentIdentity,
  identifiers = '',
  agentId = identity.nodeName ?? identity.key,
): FakeAgent {
  const agent = new FakeAgent({ agentId, identifiers, refusal: 'noted' })
  hub.attachAgent(agent, describeAgent(agent.metadata), { identity })
  return agent
}

/** Which of the agents a dial to `host` reaches. */
async function reached(
  hub: TunnelHub,
  host: string,
  agents: Readonly<Record<string, FakeAgent>>,
): Promise<string | undefined> {
  const before = Object.entries(agents).map(
    ([name, { dialled }]) => [name, dialled.length] as const,
  )
  await hub.open(host.includes(':') ? `[${host}]:80` : `${host}:80`, signal).catch(() => {})
  return before.find(([name, count]) => (agents[name]?.dialled.length ?? 0) > count)?.[0]
}

/** A log whose lines a test can read. */
function noted(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = []
  const childOf = (bound: object): Logger => ({
    ...silentLogger,
    warn: (fields: object, message: string) =>
      void lines.push(`${message} ${JSON.stringify({ ...bound, ...fields })}`),
    child: (fields: object) => childOf({ ...bound, ...fields }),
  })
  return { log: childOf({}), lines }
}

const nodeObject = (
  name: string,
  addresses: readonly string[],
  podCIDRs: readonly string[] = [],
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { podCIDRs },
  status: {
    addresses: addresses.map((address) => ({
      type: /[.:]\d*$/.test(address) ? 'InternalIP' : 'InternalDNS',
      address,
    })),
  },
})

const podObject = (name: string, nodeName: string, podIP: string, phase = 'Running') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
  status: { phase, podIP, podIPs: [{ ip: podIP }] },
})

interface World {
  readonly hub: TunnelHub
  readonly lines: string[]
  readonly cluster: LocalCluster
  readonly put: (object: KubeObject) => Promise<void>
  readonly remove: (object: KubeObject) => Promise<void>
}

/** A cluster, and a hub that knows its nodes. */
async function world(
  strategies: readonly StrategyName[],
  review: ClusterView['review'] = async (_kind, object) => object,
): Promise<World> {
  const cluster = await LocalCluster.open('default')
  const { log, lines } = noted()
  const view = { ...cluster.view, review }
  const routes = new NodeRoutes({ view, clock: systemClock, log })
  const identityCheck = new NodeCheck(view, routes)
  const { hub } = fakeHub({ strategies, identityCheck, routes, log })
  routes.start()
  closing.push(() => {
    routes.stop()
    return hub.close()
  })
  const put = async (object: KubeObject): Promise<void> => {
    const { status, ...rest } = object
    const made = await cluster.view.write('create', object, {}, signal)
    if (object.kind !== 'Node' && status)
      await cluster.view.write(
        'update',
        { ...made, ...rest, metadata: made.metadata, status },
        { subresource: 'status' },
        signal,
      )
  }
  return {
    hub,
    lines,
    cluster,
    put,
    remove: async (object) => void (await cluster.view.write('delete', object, {}, signal)),
  }
}

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  vi.useRealTimers()
})

const objects: readonly KubeObject[] = [
  nodeObject('a', ['10.0.0.1', 'fd00::1', 'a.internal', '10.0.0.3'], ['10.1.0.0/24', 'fd01::/64']),
  nodeObject('b', ['10.0.0.2', 'fd00::2', 'b.internal'], ['10.1.1.0/24']),
  // What a hostile node writes into its own Node: other nodes' addresses, names, a Pod CIDR's address, a Service's.
  nodeObject(
    'c',
    ['10.0.0.3', '10.1.1.9', 'b', 'b.internal', '10.96.0.50', '127.0.0.1'],
    ['127.64.0.0/10', 'fe80::/10'],
  ),
  podObject('of-a', 'a', '10.9.0.1'),
  podObject('of-b', 'b', '10.9.0.2'),
  podObject('done', 'a', '10.9.0.4', 'Succeeded'),
  podObject('twice-a', 'a', '10.9.0.3'),
  podObject('twice-b', 'b', '10.9.0.3'),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { clusterIP: '10.96.0.50', clusterIPs: ['10.96.0.50'], ports: [{ port: 80 }] },
  },
]

/** Every kind of destination, and the node that has it. */
const destinations: readonly (readonly [string, string, string | undefined])[] = [
  ["another node's address", '10.0.0.2', 'b'],
  ["another node's address, mapped", '::ffff:10.0.0.2', 'b'],
  ["another node's address, mapped in hex", '::ffff:a00:2', 'b'],
  ["another node's IPv6 address", 'fd00::2', 'b'],
  ["another node's IPv6 address, written out", 'FD00:0:0::0002', 'b'],
  ["another node's name", 'b', 'b'],
  ["another node's name in capitals, with a dot", 'B.', 'b'],
  ["an address in another node's Pod CIDR", '10.1.1.7', 'b'],
  ["another node's Pod", '10.9.0.2', 'b'],
  ['its own address', '10.0.0.1', 'a'],
  ['its own address, mapped', '::ffff:10.0.0.1', 'a'],
  ['its own IPv6 address', 'fd00::1', 'a'],
  ['its own name', 'a', 'a'],
  ['its own second name', 'a.internal', 'a'],
  ['its own Pod CIDR', '10.1.0.7', 'a'],
  ['its own IPv6 Pod CIDR', 'fd01::7', 'a'],
  ['its own Pod', '10.9.0.1', 'a'],
  ['a Pod of its own that is over', '10.9.0.4', undefined],
  ['an address that two Nodes list', '10.0.0.3', undefined],
  ['a name that two Nodes list', 'b.internal', undefined],
  ['an address in a Pod CIDR that another Node lists', '10.1.1.9', undefined],
  ['an address that Pods of two nodes have', '10.9.0.3', undefined],
  ["a Service's address that a Node lists", '10.96.0.50', undefined],
  ['an address that nothing lists', '203.0.113.9', undefined],
  ['loopback, which a Node lists', '127.0.0.1', undefined],
  ['loopback in a Pod CIDR', '127.64.0.1', undefined],
  ['a link-local IPv6 address in a Pod CIDR', 'fe80::7', undefined],
]

/** Every kind of identifier that could stand for a destination. */
const announcements = (host: string): string[] => [
  ...['ipv4', 'ipv6', 'host'].map((kind) => `${kind}=${encodeURIComponent(host)}`),
  `cidr=${encodeURIComponent(`${host}/${host.includes(':') ? 128 : 32}`)}`,
  'cidr=0.0.0.0/0&cidr=::/0&cidr=::ffff:0:0/96&cidr=10.1.0.0/16',
]

const strategyLists: readonly (readonly StrategyName[])[] = [
  ['destHost'],
  ['cidr'],
  ['destHost', 'cidr', 'defaultRoute'],
]

describe.each(strategyLists.map((list) => [list.join(), list] as const))(
  'with the node check and %s',
  (_list, strategies) => {
    let lab: World
    beforeEach(async () => {
      lab = await world(strategies)
      for (const object of objects) await lab.put(object)
      const probe = { a: attach(lab.hub, nodeIdentity('a')), b: attach(lab.hub, nodeIdentity('b')) }
      await vi.waitUntil(async () => (await reached(lab.hub, '10.9.0.1', probe)) === 'a')
      for (const host of ['10.9.0.3', '10.96.0.50'])
        await vi.waitUntil(async () => (await reached(lab.hub, host, probe)) === undefined)
      probe.a.close()
      probe.b.close()
    })

    test.each(destinations)(
      '[SEC-R801] %s (%s) is reached through %s alone',
      async (_name, host, owner) => {
        for (const identifiers of announcements(host)) {
          const agents = {
            a: attach(lab.hub, nodeIdentity('a'), identifiers),
            c: attach(lab.hub, nodeIdentity('c'), identifiers),
          }
          const without = owner === 'b' ? undefined : owner
          expect([identifiers, await reached(lab.hub, host, agents)]).toEqual([
            identifiers,
            without,
          ])
          const b = attach(lab.hub, nodeIdentity('b'), identifiers)
          expect(await reached(lab.hub, host, { ...agents, b })).toBe(owner)
          for (const agent of [...Object.values(agents), b]) agent.close()
          await new Promise((resolve) => setImmediate(resolve))
        }
      },
    )

    test('[SEC-R801] an agent whose credential names no node has no address', async () => {
      const { nodeName: _, ...person } = nodeIdentity('a')
      const agents = {
        person: attach(lab.hub, person, 'host=a&ipv4=10.0.0.1&cidr=10.1.0.0/24', 'x'),
      }
      for (const [, host] of destinations)
        expect(await reached(lab.hub, host, agents)).toBe(undefined)
    })
  },
)

describe('with the node check', () => {
  test('[SEC-R802] a node proves its name by its credential alone, and addresses by its Node for as long as it says so', async () => {
    const { hub, put, remove } = await world(['destHost'])
    const agents = { d: attach(hub, nodeIdentity('d'), 'host=d&ipv4=10.0.0.9') }
    expect(await reached(hub, 'd', agents)).toBe('d')
    expect(await reached(hub, '10.0.0.9', agents)).toBe(undefined)
    const own = nodeObject('d', ['10.0.0.9'])
    await put(own)
    await expect.poll(() => reached(hub, '10.0.0.9', agents)).toBe('d')
    await put(nodeObject('e', ['10.0.0.9']))
    await expect.poll(() => reached(hub, '10.0.0.9', agents)).toBe(undefined)
    await remove(nodeObject('e', []))
    await expect.poll(() => reached(hub, '10.0.0.9', agents)).toBe('d')
    await remove(own)
    await expect.poll(() => reached(hub, '10.0.0.9', agents)).toBe(undefined)
  })

  test('[SEC-R801] a node that is named like an address or a Service has no address by that', async () => {
    const { hub } = await world(['destHost'])
    const agents = { spoof: attach(hub, nodeIdentity('10.0.0.2'), 'host=10.0.0.2') }
    expect(await reached(hub, '10.0.0.2', agents)).toBe(undefined)
  })

  test('[SEC-R803] log lines name the certificate behind what is refused', async () => {
    const { hub, put, lines } = await world(['destHost'])
    await put(nodeObject('b', ['10.0.0.2']))
    attach(hub, nodeIdentity('a'), 'ipv4=10.0.0.2&host=a&cidr=10.0.0.0/8', 'b')
    expect(lines).toEqual([
      expect.stringMatching(/^identifiers of an agent refused .*"agentId":"b".*CN=system:node:a"/),
    ])
    expect(lines[0]).toContain('"serial":"01"')
    expect(lines[0]).toContain('"refused":["10.0.0.2","10.0.0.0/8"]')
  })

  test.each([
    ['bound to a Pod on a node', { 'authentication.kubernetes.io/node-name': ['a'] }, 'agent'],
    ['bound to no node', {}, undefined],
    ['with two nodes', { 'authentication.kubernetes.io/node-name': ['a', 'b'] }, undefined],
  ])('[SEC-R804] a token %s', async (_name, extra, expected) => {
    const { hub, put } = await world(['destHost'])
    await put(nodeObject('a', ['10.0.0.1']))
    const username = 'system:serviceaccount:ns:sa'
    const identity = identityOfToken({ username, groups: [], extra })
    const agents = { agent: attach(hub, identity, 'ipv4=10.0.0.1', 'x') }
    const probe = attach(hub, nodeIdentity('a'))
    await expect.poll(() => reached(hub, '10.0.0.1', { ...agents, probe })).toBeDefined()
    probe.close()
    await new Promise((resolve) => setImmediate(resolve))
    expect(await reached(hub, '10.0.0.1', agents)).toBe(expected)
  })
})

describe('the default route', () => {
  const answering =
    (answer: () => boolean, asked: unknown[] = []): ClusterView['review'] =>
    async (_kind, object) => {
      asked.push(object['spec'])
      return { ...object, status: { allowed: answer() } }
    }

  test('[SEC-R805] needs the permission to use it, which is reviewed again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let isAllowed = true
    const asked: unknown[] = []
    const review = answering(() => isAllowed, asked)
    const { hub } = await world(['destHost', 'defaultRoute'], review)
    const agents = { d: attach(hub, nodeIdentity('d'), 'default-route=true') }
    await vi.advanceTimersByTimeAsync(0)
    expect(await reached(hub, '203.0.113.9', agents)).toBe('d')
    expect(asked).toEqual([
      {
        user: 'system:node:d',
        groups: ['system:nodes'],
        resourceAttributes: {
          group: 'tunnel.sallyport.dev',
          resource: 'tunnelroutes',
          name: 'default',
          verb: 'use',
        },
      },
    ])
    isAllowed = false
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await reached(hub, '203.0.113.9', agents)).toBe(undefined)
  })

  test.each([
    ['without the permission', 'default-route=true', answering(() => false)],
    ['when it cannot be reviewed', 'default-route=true', () => Promise.reject(new Error('down'))],
    ['when it is not announced', 'host=d', answering(() => true)],
  ])('[SEC-R805] is not served %s', async (_name, identifiers, review) => {
    const { hub } = await world(['destHost', 'defaultRoute'], review)
    const agents = { d: attach(hub, nodeIdentity('d'), identifiers) }
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await reached(hub, '203.0.113.9', agents)).toBe(undefined)
  })
})

describe('without the node check', () => {
  const held = 'host=Node-A&ipv4=10.0.0.1&ipv6=fd00::1&cidr=10.1.0.0/16'
  const strategies: StrategyName[] = ['destHost', 'cidr']
  const gone = async (agent: FakeAgent): Promise<void> => {
    agent.close()
    await new Promise((resolve) => setImmediate(resolve))
  }
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  test.each([
    ['the same address', 'ipv4=10.0.0.1', '10.0.0.1'],
    ['the same address as a host', 'host=10.0.0.1', '10.0.0.1'],
    ['the same address, mapped', 'ipv6=::ffff:10.0.0.1', '10.0.0.1'],
    ['the same address as a range', 'cidr=10.0.0.1/32', '10.0.0.1'],
    ['the same address as a mapped range', 'cidr=::ffff:10.0.0.1/128', '10.0.0.1'],
    ['the same IPv6 address, written out', 'ipv6=FD00:0:0::1', 'fd00::1'],
    ['the same name', 'host=node-a.', 'node-a'],
    ['the same range', 'cidr=10.1.0.0/16', '10.1.2.3'],
    ['the same range, mapped', 'cidr=::ffff:10.1.0.0/112', '10.1.2.3'],
  ])('[SEC-R806] %s stays with the credential that holds it', async (_name, identifiers, host) => {
    const { log, lines } = noted()
    const { hub } = fakeHub({ strategies, log })
    const a = attach(hub, nodeIdentity('a'), held)
    const b = attach(hub, nodeIdentity('b'), identifiers)
    for (let times = 0; times < 3; times++) expect(await reached(hub, host, { a, b })).toBe('a')
    expect(lines.join()).toContain('held under another credential')
    // The same credential may hold it twice.
    const again = attach(hub, nodeIdentity('a'), held)
    await gone(a)
    expect(await reached(hub, host, { again, b })).toBe('again')
  })

  test.each([
    ['address', 'ipv4=10.0.0.1', '10.0.0.1'],
    ['name', 'host=node-a', 'node-a'],
    ['range', 'cidr=10.1.0.0/16', '10.1.2.3'],
  ])('[SEC-R850] the %s of an agent that has gone waits for its return', async (...row) => {
    const [, identifiers, host] = row
    const { log, lines } = noted()
    const { hub } = fakeHub({ strategies, log })
    const a = attach(hub, nodeIdentity('a'), held)
    const b = attach(hub, nodeIdentity('b'), identifiers)
    await gone(a)
    const late = attach(hub, nodeIdentity('c'), identifiers)
    expect(await reached(hub, host, { b, late })).toBe(undefined)
    await vi.advanceTimersByTimeAsync(defaultReservedMs - 1)
    const back = attach(hub, nodeIdentity('a'), held, 'another-id')
    await vi.advanceTimersByTimeAsync(defaultReservedMs)
    expect(await reached(hub, host, { back, b, late })).toBe('back')
    await gone(back)
    await vi.advanceTimersByTimeAsync(defaultReservedMs - 1)
    expect(await reached(hub, host, { b, late })).toBe(undefined)
    expect(lines.join()).not.toContain('whose holder has gone')
    await vi.advanceTimersByTimeAsync(1)
    expect(await reached(hub, host, { b, late })).toBe('b')
    expect(lines.at(-1)).toMatch(/whose holder has gone.*CN=system:node:b/)
  })

  test('[SEC-R851] what agents announce and leave is kept in bounded memory', async () => {
    const { hub } = fakeHub({ strategies })
    const names = (agent: number): string =>
      Array.from({ length: 100 }, (_, index) => `host=h-${agent}-${index}`).join('&')
    const long = 'h'.repeat(254)
    await gone(attach(hub, nodeIdentity('a'), `host=${long}`))
    for (let agent = 0; agent <= 100; agent++)
      await gone(attach(hub, nodeIdentity('a'), names(agent)))
    await gone(attach(hub, nodeIdentity('d'), 'host=own'))
    const b = attach(hub, nodeIdentity('b'), `host=h-0-0&host=h-100-0&host=own&host=${long}`)
    expect(await reached(hub, 'h-0-0', { b })).toBe(undefined)
    expect(await reached(hub, 'h-100-0', { b })).toBe('b')
    expect(await reached(hub, long, { b })).toBe('b')
    // The limit is that of one credential.
    expect(await reached(hub, 'own', { b })).toBe(undefined)
  })

  test('[SEC-R806] who announces all addresses first keeps nobody from announcing its own', async () => {
    const { hub } = fakeHub({ strategies })
    const all = attach(hub, nodeIdentity('a'), 'cidr=0.0.0.0/0&cidr=::/0')
    const one = attach(hub, nodeIdentity('b'), 'ipv4=10.0.0.2&cidr=10.1.0.0/16')
    expect(await reached(hub, '10.0.0.2', { all, one })).toBe('one')
    expect(await reached(hub, '10.1.2.3', { all, one })).toBe('one')
  })

  test('[SEC-R806] an agentID that two credentials choose gives neither the place of the other', async () => {
    const { hub } = fakeHub({ strategies: ['default'] })
    const a = attach(hub, nodeIdentity('a'), '', 'same')
    const b = attach(hub, nodeIdentity('b'), '', 'same')
    expect(hub.agentsByStrategy).toEqual([{ strategy: 'default', size: 2 }])
    a.close()
    await new Promise((resolve) => setImmediate(resolve))
    expect(await reached(hub, 'x', { a, b })).toBe('b')
  })
})
