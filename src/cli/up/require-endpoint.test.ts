import { expect, test } from 'vitest'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { requireEndpoint } from './packaged-addon.ts'

const { signal } = new AbortController()
const place = { namespace: 'n', service: 'web' }
const slice = (service: string, ...ready: (boolean | undefined)[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: service, namespace: 'n', labels: { 'kubernetes.io/service-name': service } },
  endpoints: ready.map((each) => ({ addresses: ['10.0.0.1'], conditions: { ready: each } })),
})

test.each([
  ['no slice', []],
  ['no endpoint', [slice('web')]],
  ['none that is ready', [slice('web', false)]],
  ['only one of another Service', [slice('other', true)]],
])('a Service with %s is not asked', async (_what, objects) => {
  const view = new FakeClusterView({ objects })
  await expect(requireEndpoint(view, place, signal)).rejects.toThrow('web has no endpoint yet')
})

test('a Service with an endpoint that is ready is', async () => {
  const view = new FakeClusterView({ objects: [slice('web', false, true)] })
  expect(await requireEndpoint(view, place, signal)).toBeUndefined()
})
