import { afterAll, describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../core/index.ts'
import { FakeClusterView } from '../../../testing/fake-cluster-view.ts'
import { startController } from '../started-controller.suite.ts'
import { createEndpointsController } from './endpoints-controller.ts'

const services = 200

const podLabelled = (name: string, labels: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'n', labels },
  spec: { containers: [] },
  status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] },
})

const serviceSelecting = (name: string, selector: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'n' },
  spec: { selector, clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
})

const stop = new AbortController()
afterAll(() => stop.abort())

/** A controller that knows 200 Services, and how to show it a Pod; returns the keys it asks for. */
async function withServices(selectorOf: (index: number) => Record<string, string>) {
  const objects = Array.from({ length: services }, (_, index) =>
    serviceSelecting(`s${index}`, selectorOf(index)),
  )
  const view = new FakeClusterView({ objects })
  const controller = createEndpointsController(view)
  const started = await startController(controller, view, stop.signal)
  started.takeKeys()
  return async (labels: Record<string, string>): Promise<Set<string>> => {
    view.put(podLabelled('p', labels))
    await started.settled()
    return new Set(started.takeKeys())
  }
}

describe('a changed Pod asks for work on the Services that it concerns, and no others [SEC-R506]', () => {
  test('a label that no Service selects by asks for none', async () => {
    const put = await withServices(() => ({ app: 'web' }))
    expect((await put({ app: 'web' })).size).toBe(services)
    expect((await put({ app: 'web', note: 'x' })).size).toBe(0)
  })

  test('a Pod that goes from one Service to another asks for these two', async () => {
    const put = await withServices((index) => ({ app: `a${index}` }))
    await put({ app: 'a1' })
    expect(await put({ app: 'a2' })).toEqual(new Set(['n/s1', 'n/s2']))
  })

  test('a Pod that all Services select asks for each once', async () => {
    const put = await withServices(() => ({ app: 'web' }))
    expect((await put({})).size).toBe(0)
    expect((await put({ app: 'web' })).size).toBe(services)
    expect((await put({})).size).toBe(services)
  })

  test('a Service is found by any of several labels only if all match', async () => {
    const put = await withServices(() => ({ app: 'web', tier: 'front' }))
    expect((await put({ app: 'web' })).size).toBe(0)
    expect((await put({ tier: 'front' })).size).toBe(0)
    expect((await put({ app: 'web', tier: 'front', x: 'y' })).size).toBe(services)
  })
})
