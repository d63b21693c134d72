import { afterAll, expect, test } from 'vitest'
import { type KubeObject, kubeMicroTime, kubeTime } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { event } from '../kinds/index.ts'
import { createEventTtlController } from './event-ttl.ts'
import { startController } from './started-controller.suite.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const minutes = (count: number) => now - count * 60_000
const stop = new AbortController()
afterAll(() => stop.abort())
const { signal } = stop

const eventNamed = (name: string, fields: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name, namespace: 'n' },
  ...fields,
})

async function leftAfterSweep(...events: KubeObject[]): Promise<string[]> {
  const view = new FakeClusterView({ objects: events })
  const clock = { now: () => now, monotonic: () => 0 }
  const controller = createEventTtlController({ view, clock, ttlMs: 3_600_000 })
  await (await startController(controller, view, signal)).reconcile('sweep')
  return (await view.list(event.kind, {}, signal)).items.map(({ metadata }) => metadata.name)
}

test('an event goes an hour after it was last reported, by whatever field says so', async () => {
  const left = await leftAfterSweep(
    eventNamed('old', { lastTimestamp: kubeTime(minutes(61)) }),
    eventNamed('young', { lastTimestamp: kubeTime(minutes(59)) }),
    eventNamed('old-micro', { eventTime: kubeMicroTime(minutes(61)), lastTimestamp: null }),
    eventNamed('young-micro', { eventTime: kubeMicroTime(minutes(59)) }),
    eventNamed('repeated', {
      eventTime: kubeMicroTime(minutes(90)),
      series: { count: 2, lastObservedTime: kubeMicroTime(minutes(1)) },
    }),
    eventNamed('timeless', {}),
  )
  expect(left).toEqual(['repeated', 'young', 'young-micro'])
})

test('an event that is reported again meanwhile stays', async () => {
  const old = eventNamed('a', { lastTimestamp: kubeTime(minutes(90)) })
  const view = new FakeClusterView({ objects: [old] })
  const clock = { now: () => now, monotonic: () => 0 }
  const controller = createEventTtlController({ view, clock, ttlMs: 3_600_000 })
  const started = await startController(controller, view, signal)
  view.put(eventNamed('a', { lastTimestamp: kubeTime(now) }))
  await started.reconcile('sweep')
  expect((await view.list(event.kind, {}, signal)).items).toHaveLength(1)
})

test('the next sweep comes by itself', async () => {
  const view = new FakeClusterView()
  const clock = { now: () => now, monotonic: () => 0 }
  const controller = createEventTtlController({ view, clock, ttlMs: 3_600_000 })
  const started = await startController(controller, view, signal)
  expect(started.takeKeys()).toEqual(['sweep'])
  expect(await started.reconcile('sweep')).toEqual({ againAfterMs: 60_000 })
})
