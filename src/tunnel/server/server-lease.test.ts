import { describe, expect, test } from 'vitest'
import {
  ApiError,
  type Kind,
  type KubeObject,
  kubeMicroTime,
  MetricsRegistry,
  silentLogger,
} from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { ServerLease } from './lease.ts'
import { ServerMetrics } from './metrics.ts'

const kind: Kind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  resource: 'leases',
  namespaced: true,
}
const signal = new AbortController().signal
const namespace = 'kube-system'
const labels = { 'k8s-app': 'konnectivity-server' }
const start = Date.parse('2026-03-01T12:00:00Z')

function labOf(view = new FakeClusterView()) {
  const registry = new MetricsRegistry()
  const clock = { time: start, now: () => clock.time, monotonic: () => clock.time }
  const lease = new ServerLease({
    view,
    serverId: 'one',
    namespace,
    labels,
    metrics: new ServerMetrics(registry),
    clock,
    log: silentLogger,
  })
  const read = (name = 'konnectivity-proxy-server-one') =>
    view.get(kind, { namespace, name }, signal)
  return { view, registry, clock, lease, read }
}

const leaseOf = (name: string, renewedAt: number, extra: object = {}): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace, labels },
  spec: { leaseDurationSeconds: 30, renewTime: kubeMicroTime(renewedAt), ...extra },
})

test('[TUN-W17] a Lease is made with its name, label, holder and duration, and renewed', async () => {
  const { lease, read, clock } = labOf()
  await lease.renew(signal)
  expect(await read()).toMatchObject({
    metadata: { labels },
    spec: {
      holderIdentity: 'one',
      leaseDurationSeconds: 30,
      acquireTime: '2026-03-01T12:00:00.000000Z',
      renewTime: '2026-03-01T12:00:00.000000Z',
    },
  })
  clock.time += 15_000
  await lease.renew(signal)
  expect(await read()).toMatchObject({
    spec: {
      acquireTime: '2026-03-01T12:00:00.000000Z',
      renewTime: '2026-03-01T12:00:15.000000Z',
    },
  })
})

test('[TUN-W17] the Lease is there soon after the start and gone after the end', async () => {
  const { lease, read } = labOf()
  lease.start()
  await expect.poll(() => read()).toBeDefined()
  await lease.stop(signal)
  expect(await read()).toBeUndefined()
  await lease.stop(signal)
})

describe('[TUN-W17] collecting', () => {
  test('takes away what has expired and nothing else', async () => {
    const view = new FakeClusterView({
      objects: [
        leaseOf('old', start - 31_000),
        leaseOf('fresh', start - 29_000),
        { ...leaseOf('foreign', 0), metadata: { name: 'foreign', namespace } },
      ],
    })
    const { lease, read, registry } = labOf(view)
    await lease.collect(signal)
    expect(await read('old')).toBeUndefined()
    expect(await read('fresh')).toBeDefined()
    expect(await read('foreign')).toBeDefined()
    const page = registry.expose()
    expect(page).toContain('server_culled_leases_count 1\n')
    expect(page).toContain('server_lease_list_total{http_status_code="200",reason=""} 1\n')
    expect(page).toContain('server_lease_delete_total{http_status_code="200",reason=""} 1\n')
  })

  test('leaves a Lease that was renewed after it was listed', async () => {
    const view = new FakeClusterView({ objects: [leaseOf('old', start - 31_000)] })
    const { lease, read, registry } = labOf(view)
    const list = view.list.bind(view)
    view.list = async (...args) => {
      const found = await list(...args)
      view.put(leaseOf('old', start))
      return found
    }
    await lease.collect(signal)
    expect(await read('old')).toBeDefined()
    expect(registry.expose()).toContain(
      'server_lease_delete_total{http_status_code="409",reason="Conflict"} 1\n',
    )
  })

  test('counts lists that fail', async () => {
    const { lease, view, registry } = labOf()
    view.fail(new ApiError('Forbidden', 'no'))
    await expect(lease.collect(signal)).rejects.toThrow('no')
    expect(registry.expose()).toContain(
      'server_lease_list_total{http_status_code="403",reason="Forbidden"} 1\n',
    )
  })
})

test('a cluster that is away is tried again and holds up no end', async () => {
  const { lease, view } = labOf()
  view.fail(new ApiError('ServiceUnavailable', 'away'))
  lease.start()
  await expect(lease.stop(signal)).resolves.toBeUndefined()
})
