import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiError, type KubeObject, kubeMicroTime, systemClock } from '../../../core/index.ts'
import { FakeClusterView } from '../../../testing/fake-cluster-view.ts'
import { LogLines } from '../agent-lab.suite.ts'
import { AgentMetrics } from '../metrics.ts'
import { AnsweredCount, LeaseCount, serverCount } from './server-count.ts'

const fixed = (value: number) => ({ count: () => value })

describe('[TUN-W16, TUN-U12] the number of servers', () => {
  test.each([
    ['an answer', 3, undefined, 'default', 3],
    ['no answer', 0, undefined, 'default', 1],
    ['Leases alone', 5, 2, 'default', 2],
    ['Leases alone, by the empty name', 5, 2, '', 2],
    ['no Lease', 5, 0, 'default', 1],
    ['the larger one, of answers', 5, 2, 'max', 5],
    ['the larger one, of Leases', 2, 5, 'max', 5],
    ['the larger one of nothing', 0, 0, 'max', 1],
    ['the larger one without Leases', 4, undefined, 'max', 4],
  ] as const)('%s', (_name, answers, leases, source, expected) => {
    const sources = { answers: fixed(answers), source }
    const all = leases === undefined ? sources : { ...sources, leases: fixed(leases) }
    expect(serverCount(all)).toBe(expected)
  })

  test('an answer that says nothing leaves the last one', () => {
    const answers = new AnsweredCount()
    answers.heard(3)
    answers.heard(undefined)
    answers.heard(0)
    expect(answers.count()).toBe(3)
  })
})

const now = Date.parse('2026-05-01T12:00:00Z')

function lease(
  name: string,
  spec: object,
  labels = { 'k8s-app': 'konnectivity-server' },
): KubeObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-system', labels },
    spec,
  }
}

const renewed = (ago: number, seconds = 30): object => ({
  renewTime: kubeMicroTime(now - ago),
  leaseDurationSeconds: seconds,
})

describe('[TUN-W16] Leases in a cluster', () => {
  let time = now
  let view: FakeClusterView
  let lines: LogLines
  let metrics: AgentMetrics
  let leases: LeaseCount

  beforeEach(() => {
    time = now
    lines = new LogLines()
    metrics = new AgentMetrics()
    view = new FakeClusterView({
      objects: [
        lease('s1', renewed(0)),
        lease('s2', renewed(10_000)),
        lease('expired', renewed(40_000)),
        lease('other', renewed(0), { 'k8s-app': 'something-else' }),
      ],
    })
    leases = new LeaseCount({
      view: () => Promise.resolve(view),
      namespace: 'kube-system',
      labelSelector: 'k8s-app=konnectivity-server',
      metrics,
      clock: { now: () => time, monotonic: () => systemClock.monotonic() },
      log: lines.log,
    })
    leases.start()
  })

  afterEach(() => leases.stop())

  test('those that are valid and labelled count, as they come and go', async () => {
    await expect.poll(() => leases.count()).toBe(2)
    view.put(lease('s3', renewed(0)))
    await expect.poll(() => leases.count()).toBe(3)
    time += 25_000
    expect(leases.count()).toBe(2)
    time += 25_000
    expect(leases.count()).toBe(2) // none is valid any more: the last good number is kept
    expect(metrics.registry.expose()).toContain(
      'agent_lease_lists_total{http_response_code="200",reason=""} 1',
    )
  })
})

test('[TUN-W16, TUN-R15] a cluster that cannot be asked is tried again and stops nobody', async () => {
  const lines = new LogLines()
  const metrics = new AgentMetrics()
  const view = new FakeClusterView()
  view.list = () => Promise.reject(new ApiError('Forbidden', 'no'))
  const leases = new LeaseCount({
    view: () => Promise.resolve(view),
    namespace: 'kube-system',
    labelSelector: '',
    metrics,
    clock: systemClock,
    log: lines.log,
  })
  leases.start()
  expect(serverCount({ answers: fixed(0), leases, source: 'default' })).toBe(1)
  await lines.seen('cannot list or watch')
  expect(metrics.registry.expose()).toContain(
    'agent_lease_lists_total{http_response_code="403",reason="Forbidden"} 1',
  )
  await leases.stop()
})
