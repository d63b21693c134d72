import { describe, expect, test, vi } from 'vitest'
import type { Authentication } from '../../core/index.ts'
import { isLongRunning, parseRequestInfo } from '../request-info.ts'
import type { Ticket } from './fair-queue.ts'
import { defaultFairnessLimits, Fairness, type FairnessLimits } from './fairness.ts'

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

function ticketOf(fairness: Fairness, asked: Asked): Ticket | undefined {
  const info = parseRequestInfo(asked.method ?? 'GET', asked.url ?? '/api/v1/pods')
  return fairness.ticketFor({
    authentication: asked.who,
    info,
    longRunning: isLongRunning(info),
    sourceAddress: asked.from ?? '10.0.0.1',
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
  if (ticket === undefined) return { outcome: 'exempt' }
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
    const fairness = new Fairness(limits)
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
      const wait = Promise.resolve(fairness.admit(ticketOf(fairness, { who: as('a') })!))
      const outcome = wait.catch((error: unknown) => error)
      vi.advanceTimersByTime(limits.maxQueueMs)
      expect(await outcome).toMatchObject({ reason: 'TooManyRequests' })
      expect(fairness.queued('readOnly')).toBe(0)
      expect(fairness.refused('readOnly')).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })
})
