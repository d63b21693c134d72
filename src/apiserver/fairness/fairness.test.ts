import { describe, expect, test, vi } from 'vitest'
import type { Authentication } from '../../core/index.ts'
import { isLongRunning, parseRequestInfo } from '../../core/index.ts'
import { defaultFairnessLimits, type FairnessLimits, minHeldBytes } from '../limits.ts'
import type { Ticket } from './fair-queue.ts'
import { Fairness, partyOf, socketBucket } from './fairness.ts'
import { HeldBytes, type Holder } from './held-bytes.ts'

const limits: FairnessLimits = {
  ...defaultFairnessLimits,
  readOnly: 8,
  mutating: 4,
  longRunning: 8,
  queuedPerUser: 3,
}

const as = (username: string, ...groups: string[]): Authentication => ({
  user: { username, groups },
  method: 'test',
})

interface Asked {
  readonly who: Authentication
  readonly method?: string
  readonly url?: string
  readonly from?: string
}

function ticketOf(fairness: Fairness, asked: Asked): Ticket {
  const info = parseRequestInfo(asked.method ?? 'GET', asked.url ?? '/api/v1/pods')
  return fairness.ticketFor({
    authentication: asked.who,
    info,
    longRunning: isLongRunning(info),
    sourceAddress: asked.from ?? '10.0.0.1',
    disconnect: () => {},
  })
}

type Outcome = 'running' | 'queued' | 'refused' | 'exempt'

interface Answer {
  readonly outcome: Outcome
  readonly ticket?: Ticket
  readonly error?: unknown
}

function ask(fairness: Fairness, asked: Asked): Answer {
  const ticket = ticketOf(fairness, asked)
  if (ticket.level === 'administrator' || ticket.level === 'health') return { outcome: 'exempt' }
  try {
    const wait = fairness.admit(ticket)
    wait?.catch(() => {})
    return { outcome: wait ? 'queued' : 'running', ticket }
  } catch (error) {
    return { outcome: 'refused', ticket, error }
  }
}

const askTimes = (fairness: Fairness, count: number, asked: Asked) =>
  Array.from({ length: count }, () => ask(fairness, asked))
const outcomes = (asked: readonly { outcome: Outcome }[]) => asked.map(({ outcome }) => outcome)

describe('requests in flight are limited per user and in total [GND-R84]', () => {
  test('acting as many others gives nobody more than their own share', () => {
    const fairness = new Fairness(limits)
    const acting = (name: string) => ({ ...as(name), impersonator: as('editor').user })
    const asked = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) =>
      ask(fairness, { who: acting(`system:serviceaccount:team:${name}`) }),
    )
    expect(outcomes(asked)).toEqual(['running', 'running', 'queued', 'queued', 'queued', 'refused'])
    expect(ask(fairness, { who: as('other') }).outcome).toBe('running')
  })

  test('one user gets a share, then waits, then is turned away', () => {
    const asked = askTimes(new Fairness(limits), 6, { who: as('a') })
    expect(outcomes(asked)).toEqual(['running', 'running', 'queued', 'queued', 'queued', 'refused'])
    expect(asked.at(-1)?.error).toMatchObject({
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 1 },
    })
  })

  test('all users together get no more than the total', () => {
    const fairness = new Fairness(limits)
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) askTimes(fairness, 2, { who: as(name) })
    expect(fairness.running('readOnly')).toBe(8)
    expect(fairness.queued('readOnly')).toBe(2)
  })

  test('reads do not take the room of writes, nor watches that of reads', () => {
    const fairness = new Fairness(limits)
    askTimes(fairness, 6, { who: as('a') })
    expect(ask(fairness, { who: as('a'), method: 'POST' }).outcome).toBe('running')
    expect(ask(fairness, { who: as('a'), url: '/api/v1/pods?watch=1' }).outcome).toBe('running')
  })

  test('watches over the share are turned away at once: waiting for one to end makes no sense', () => {
    const asked = askTimes(new Fairness(limits), 3, { who: as('a'), url: '/api/v1/pods?watch=1' })
    expect(outcomes(asked)).toEqual(['running', 'running', 'refused'])
  })

  test.each([
    ['the same address is one user', '10.0.0.1', 'queued'],
    ['another address is another user', '10.0.0.2', 'running'],
  ])('of anonymous requests %s', (_name, from, expected) => {
    const fairness = new Fairness({ ...limits, anonymousShare: 1 })
    askTimes(fairness, 2, { who: as('system:anonymous'), from: '10.0.0.1' })
    expect(ask(fairness, { who: as('system:anonymous'), from }).outcome).toBe(expected)
  })

  test('nobody can pass for an anonymous bucket by his name', () => {
    const fairness = new Fairness(limits)
    askTimes(fairness, 2, { who: as('10.0.0.1') })
    expect(ask(fairness, { who: as('system:anonymous') }).outcome).toBe('running')
  })
})

describe('what keeps a cluster alive is not held back by others', () => {
  const full = () => {
    const fairness = new Fairness(limits)
    for (const name of ['a', 'b', 'c', 'd']) {
      askTimes(fairness, 2, { who: as(name) })
      askTimes(fairness, 1, { who: as(name), method: 'PUT' })
    }
    return fairness
  }
  const node = as('system:node:n', 'system:nodes')
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n'

  test.each<[string, Asked, Outcome]>([
    ['an ordinary user waits', { who: as('z') }, 'queued'],
    ['a health check passes', { who: as('z'), url: '/readyz' }, 'exempt'],
    ['a path that only looks like one waits', { who: as('z'), url: '/readyzz' }, 'queued'],
    ['an administrator passes', { who: as('root', 'system:masters') }, 'exempt'],
    ['a node renews its lease', { who: node, method: 'PUT', url: lease }, 'running'],
    ['a node reports', { who: node, method: 'PATCH', url: '/api/v1/nodes/n/status' }, 'running'],
    ['a node that lists waits', { who: node }, 'queued'],
    ['a lease of a stranger waits', { who: as('z'), method: 'PUT', url: lease }, 'queued'],
  ])('%s', (_name, asked, expected) => {
    expect(ask(full(), asked).outcome).toBe(expected)
  })

  test("a heartbeat overtakes the node's own waiting requests", () => {
    const fairness = full()
    expect(ask(fairness, { who: node, method: 'PUT' }).outcome).toBe('queued')
    expect(ask(fairness, { who: node, method: 'PUT', url: lease }).outcome).toBe('running')
  })
})

describe('those who wait take turns by user', () => {
  test('a greedy user with 1,000 requests does not delay another beyond one place [GND-R84]', () => {
    const fairness = new Fairness({ ...limits, userShare: 1, queuedPerUser: 1_000 })
    const greedy = askTimes(fairness, 1_000, { who: as('greedy') })
    const modest = ask(fairness, { who: as('modest') })
    expect(modest.outcome).toBe('queued')
    const [first, second] = greedy
    fairness.release(first!.ticket!)
    fairness.release(second!.ticket!)
    expect(modest.ticket!.state).toBe('running')
  })

  test('with the default share a greedy user does not delay another at all [GND-R84]', () => {
    const fairness = new Fairness(defaultFairnessLimits)
    askTimes(fairness, 1_000, { who: as('greedy') })
    expect(ask(fairness, { who: as('modest') }).outcome).toBe('running')
  })

  test('one place after the other goes to one user after the other', () => {
    const fairness = new Fairness({ ...limits, readOnly: 1, userShare: 1 })
    const holder = ask(fairness, { who: as('holder') }).ticket!
    const waiting = ['a', 'a', 'b', 'c'].map((name) => ask(fairness, { who: as(name) }).ticket!)
    const order: string[] = []
    let running = holder
    for (let turn = 0; turn < waiting.length; turn++) {
      fairness.release(running)
      running = waiting.find((ticket) => ticket.state === 'running')!
      order.push(running.user)
    }
    expect(order).toEqual(['a', 'b', 'c', 'a'])
  })

  test('who leaves while waiting frees his place in the line, and holds none', () => {
    const fairness = new Fairness(limits)
    const asked = askTimes(fairness, 5, { who: as('a') })
    for (const { ticket } of asked) {
      fairness.release(ticket!)
      fairness.release(ticket!)
    }
    expect([fairness.running('readOnly'), fairness.queued('readOnly')]).toEqual([0, 0])
    expect(outcomes(askTimes(fairness, 3, { who: as('a') }))).toEqual([
      'running',
      'running',
      'queued',
    ])
  })

  test('nobody waits for ever', async () => {
    vi.useFakeTimers()
    try {
      const fairness = new Fairness(limits)
      askTimes(fairness, 2, { who: as('a') })
      const wait = Promise.resolve(fairness.admit(ticketOf(fairness, { who: as('a') })))
      const outcome = wait.catch((error: unknown) => error)
      vi.advanceTimersByTime(limits.maxQueueMs)
      expect(await outcome).toMatchObject({ reason: 'TooManyRequests' })
      expect(fairness.queued('readOnly')).toBe(0)
      expect(fairness.rejected('readOnly')).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('each kind of clients has permits of its own [SEC-R605]', () => {
  const ns = (namespace: string, name: string) => as(`system:serviceaccount:${namespace}:${name}`)
  const kinds: Record<string, (i: number) => Asked> = {
    anonymous: (i) => ({ who: as('system:anonymous'), from: `10.0.0.${i}` }),
    'service accounts': (i) => ({ who: ns(`ns-${i}`, 'a') }),
    users: (i) => ({ who: as(`user-${i}`) }),
  }
  const requests: Record<string, Partial<Asked>> = {
    reads: {},
    writes: { method: 'POST' },
    watches: { url: '/api/v1/pods?watch=1' },
  }
  const always: Record<string, Asked> = {
    'an administrator': { who: as('root', 'system:masters') },
    'a health check': { who: as('system:anonymous'), url: '/livez' },
  }
  const full = (fill: (i: number) => Asked, what: Partial<Asked>): Fairness => {
    const fairness = new Fairness({ ...limits, queuedInTotal: 64, queuedPerUser: 64 })
    for (let i = 0; i < 200; i++) ask(fairness, { ...fill(i), ...what })
    return fairness
  }
  const cases = Object.keys(kinds).flatMap((kind) =>
    Object.keys(requests).map((what) => [kind, what] as const),
  )

  test.each(cases)('%s that take all their permits for %s', (kind, what) => {
    const fill = kinds[kind]
    const request = requests[what]
    if (!fill || !request) throw new Error('no such case')
    const fairness = full(fill, request)
    expect(ask(fairness, { ...fill(999), ...request }).outcome).toBe('refused')
    const others = Object.entries(kinds).filter(([other]) => other !== kind)
    const all = others.flatMap(([, make]) =>
      Object.values(requests).map((more) => ask(fairness, { ...make(1_000), ...more })),
    )
    expect(new Set(outcomes(all))).toEqual(new Set(['running']))
    for (const asked of Object.values(always)) expect(ask(fairness, asked).outcome).toBe('exempt')
  })

  test('the service accounts of one namespace share one part', () => {
    const fairness = new Fairness(limits)
    const first = ['a', 'b', 'c', 'd'].map((name) => ask(fairness, { who: ns('team', name) }))
    expect(outcomes(first)).toEqual(['running', 'running', 'queued', 'queued'])
    expect(ask(fairness, { who: ns('other', 'a') }).outcome).toBe('running')
  })

  test('an administrator who acts as another user is one still', () => {
    const who = { ...as('bob'), impersonator: as('root', 'system:masters').user }
    expect(ask(new Fairness({ ...limits, readOnly: 0 }), { who }).outcome).toBe('exempt')
  })
})

describe('bytes that wait for clients [SEC-R603]', () => {
  const holderOf = (user: string, ended: string[]): Holder => ({
    user,
    held: 0,
    request: { disconnect: () => void ended.push(user) },
  })

  test('are limited per user, and come back', () => {
    const held = new HeldBytes({ maxBytesPerUser: 10_000, maxBytesInTotal: 100_000 })
    const [a, b, other] = ['eve', 'eve', 'bob'].map((user) => holderOf(user, []))
    expect([held.hold(a!, 6_000), held.hold(b!, 6_000), held.hold(other!, 6_000)]).toEqual([
      true,
      false,
      true,
    ])
    held.release(a!)
    held.release(a!)
    expect([held.hold(b!, 6_000), held.total]).toEqual([true, 12_000])
  })

  test('count at least the objects of a request', () => {
    const held = new HeldBytes({ maxBytesPerUser: 10_000, maxBytesInTotal: 100_000 })
    expect([held.hold(holderOf('eve', []), 0), held.total]).toEqual([true, minHeldBytes])
  })

  test('in total are taken from the user with most of them, never from another', () => {
    const ended: string[] = []
    const held = new HeldBytes({ maxBytesPerUser: 50_000, maxBytesInTotal: 100_000 })
    for (let i = 0; i < 9; i++) held.hold(holderOf('eve', ended), 5_000)
    for (let i = 0; i < 9; i++) held.hold(holderOf('mallory', ended), 5_000)
    for (let i = 0; i < 9; i++) expect(held.hold(holderOf(`user-${i}`, ended), 5_000)).toBe(true)
    expect(new Set(ended)).toEqual(new Set(['eve', 'mallory']))
    expect([held.total <= 100_000, held.disconnected]).toEqual([true, ended.length])
  })
})

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1:2', 'fe80:0:0:0'],
  ['', ''],
])('the party behind address %s is %s', (address, bucket) => {
  expect(socketBucket(address)).toBe(bucket)
})

test.each([
  ['ann', 'ann'],
  ['system:serviceaccount:team:a', 'system:serviceaccount:team'],
  ['system:serviceaccount:team:b', 'system:serviceaccount:team'],
  ['system:serviceaccount:team', 'system:serviceaccount:team'],
])('the party behind user %s is %s', (username, party) => {
  expect(partyOf(username)).toBe(party)
})
