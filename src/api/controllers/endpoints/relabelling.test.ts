import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../core/index.ts'
import { FakeClusterView } from '../../../testing/fake-cluster-view.ts'
import { pod, service } from '../../kinds/index.ts'
import { createEndpointsController } from './endpoints-controller.ts'

const services = 200

const podLabelled = (
  name: string,
  labels: Record<string, string>,
  version: number,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'n', uid: name, labels, resourceVersion: String(version) },
  spec: { containers: [] },
  status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] },
})

/** A controller that knows 200 Services, and how to show it a Pod; returns the keys it asks for. */
function withServices(selectorOf: (index: number) => Record<string, string>) {
  const { watches } = createEndpointsController(new FakeClusterView())
  const watchOf = (kind: string) => watches.find((watch) => watch.kind.kind === kind)
  const [podWatch, serviceWatch] = [watchOf(pod.kind.kind), watchOf(service.kind.kind)]
  for (let index = 0; index < services; index++) {
    serviceWatch?.put({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `s${index}`, namespace: 'n', uid: `s${index}`, resourceVersion: '1' },
      spec: { selector: selectorOf(index), clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
    })
  }
  let version = 1
  return (labels: Record<string, string>): Set<string> =>
    new Set(podWatch?.put(podLabelled('p', labels, ++version)))
}

describe('a changed Pod asks for work on the Services that it concerns, and no others [SEC-R506]', () => {
  test('a label that no Service selects by asks for none', () => {
    const put = withServices(() => ({ app: 'web' }))
    expect(put({ app: 'web' }).size).toBe(services)
    expect(put({ app: 'web', note: 'x' }).size).toBe(0)
  })

  test('a Pod that goes from one Service to another asks for these two', () => {
    const put = withServices((index) => ({ app: `a${index}` }))
    put({ app: 'a1' })
    expect(put({ app: 'a2' })).toEqual(new Set(['n/s1', 'n/s2']))
  })

  test('a Pod that all Services select asks for each once', () => {
    const put = withServices(() => ({ app: 'web' }))
    expect(put({}).size).toBe(0)
    expect(put({ app: 'web' }).size).toBe(services)
    expect(put({}).size).toBe(services)
  })

  test('a Service is found by any of several labels only if all match', () => {
    const put = withServices(() => ({ app: 'web', tier: 'front' }))
    expect(put({ app: 'web' }).size).toBe(0)
    expect(put({ tier: 'front' }).size).toBe(0)
    expect(put({ app: 'web', tier: 'front', x: 'y' }).size).toBe(services)
  })
})
