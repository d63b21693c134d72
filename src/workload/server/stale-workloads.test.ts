import { afterAll, expect, test } from 'vitest'
import {
  type StartedController,
  startController,
} from '../../api/controllers/started-controller.suite.ts'
import { type KubeObject, wellKnownKinds, workloadMark } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { createStaleWorkloads } from './stale-workloads.ts'

const signal = new AbortController().signal
const key = { namespace: 'n', name: 'x' }
const pod: KubeObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { ...key, labels: { [workloadMark]: 'a' } },
}
const lease = (machine = 'a'): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { ...key, labels: { [workloadMark]: machine } },
  spec: { leaseDurationSeconds: 20 },
})

const stop = new AbortController()
afterAll(() => stop.abort())

class Lab {
  now = 0
  readonly view: FakeClusterView
  #started: StartedController | undefined

  constructor(...objects: KubeObject[]) {
    this.view = new FakeClusterView({ objects })
  }

  /** What the controller does at this second, with everything as it is now. */
  async at(second: number) {
    this.now = second
    const clock = { now: () => 0, monotonic: () => this.now * 1_000 }
    const controller = createStaleWorkloads(this.view, clock)
    this.#started ??= await startController(controller, this.view, stop.signal)
    await this.#started.settled()
    return this.#started.reconcile('n/x')
  }

  async isThere(): Promise<boolean> {
    return (await this.view.get(wellKnownKinds.pod, key, signal)) !== undefined
  }
}

test('a Pod goes when its Lease is not renewed for as long as it says [ISS-W1]', async () => {
  const lab = new Lab(pod, lease())
  expect(await lab.at(0)).toEqual({ againAfterMs: 20_000 })
  expect(await lab.at(19)).toEqual({ againAfterMs: 1_000 })
  expect(await lab.isThere()).toBe(true)
  await lab.at(20)
  expect(await lab.isThere()).toBe(false)
})

test('a renewed Lease keeps it', async () => {
  const lab = new Lab(pod, lease())
  await lab.at(0)
  const stored = await lab.view.get(wellKnownKinds.lease, key, signal)
  lab.now = 19
  await lab.view.write('update', { ...lease(), metadata: stored!.metadata }, {}, signal)
  expect(await lab.at(19)).toEqual({ againAfterMs: 20_000 })
})

test.each([
  ['without a Lease', undefined],
  ['with a Lease of another machine', lease('b')],
])('a Pod %s goes after a while', async (_what, other) => {
  const lab = new Lab(pod, ...(other ? [other] : []))
  expect(await lab.at(0)).toEqual({ againAfterMs: 40_000 })
  await lab.at(40)
  expect(await lab.isThere()).toBe(false)
})

test('a Lease that somebody deletes counts until it would have ended [ISS-W6]', async () => {
  const lab = new Lab(pod, lease())
  await lab.at(0)
  const stored = await lab.view.get(wellKnownKinds.lease, key, signal)
  lab.now = 100
  await lab.view.write('update', { ...lease(), metadata: stored!.metadata }, {}, signal)
  await lab.at(100)
  await lab.view.write('delete', lease(), {}, signal)
  expect(await lab.at(110)).toEqual({ againAfterMs: 10_000 })
  await lab.at(120)
  expect(await lab.isThere()).toBe(false)
})

test('a new Pod of an old name begins a new life', async () => {
  const lab = new Lab(pod, lease())
  await lab.at(0)
  lab.now = 19
  await lab.view.write('delete', pod, {}, signal)
  await lab.view.write('create', pod, {}, signal)
  expect(await lab.at(19)).toEqual({ againAfterMs: 40_000 })
})

test('who labels the Pod does not prolong its life', async () => {
  const lab = new Lab(pod, lease())
  await lab.at(0)
  const stored = await lab.view.get(wellKnownKinds.pod, key, signal)
  const labels = { ...stored!.metadata.labels, more: '1' }
  const metadata = { ...stored!.metadata, labels }
  await lab.view.write('update', { ...pod, metadata }, {}, signal)
  await lab.at(20)
  expect(await lab.isThere()).toBe(false)
})

test('Pods of people stay', async () => {
  const lab = new Lab({ ...pod, metadata: key })
  await lab.at(0)
  await lab.at(1_000)
  expect(await lab.isThere()).toBe(true)
})
