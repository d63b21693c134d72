import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../core/index.ts'
import { endpointSlice, endpoints, pod, service } from '../../kinds/index.ts'
import { createGarbageCollector } from '../garbage-collector.ts'
import { allKinds, LocalCluster } from '../local-cluster.suite.ts'
import { createEndpointsController } from './endpoints-controller.ts'

const web = { namespace: 'team', name: 'web' }

async function running(): Promise<LocalCluster> {
  const cluster = await LocalCluster.open('team')
  cluster.run(createEndpointsController(cluster.view))
  return cluster
}

const serviceNamed = (name: string, spec: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'team', labels: { team: 'a' } },
  spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 'http' }], ...spec },
})

interface PodState {
  readonly ip: string
  readonly labels?: Record<string, string>
  readonly ready?: boolean
  readonly phase?: string
}

async function runPod(cluster: LocalCluster, name: string, state: PodState): Promise<KubeObject> {
  const ports = [{ name: 'http', containerPort: 8080 }]
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'team', labels: { app: 'web', ...state.labels } },
    spec: { nodeName: 'node-1', containers: [{ name: 'c', image: 'i', ports }] },
  })
  return setPod(cluster, name, state)
}

const setPod = (
  cluster: LocalCluster,
  name: string,
  { ip, ready = true, phase = 'Running' }: PodState,
): Promise<KubeObject> =>
  cluster.change(
    pod.kind,
    { namespace: 'team', name },
    (object) => {
      object['status'] = {
        phase,
        podIP: ip,
        podIPs: [{ ip }],
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      }
    },
    'status',
  )

const slicesOf = { namespace: 'team', labelSelector: 'kubernetes.io/service-name=web' }

/** Waits for slices whose text has all parts; returns them. */
const untilSlices = (cluster: LocalCluster, ...parts: string[]): Promise<KubeObject[]> =>
  cluster.until(endpointSlice.kind, slicesOf, (slices) =>
    parts.every((part) => JSON.stringify(slices).includes(part)),
  )

const untilEndpoints = (cluster: LocalCluster, ...parts: string[]): Promise<KubeObject> =>
  cluster.untilObject(endpoints.kind, web, (object) =>
    parts.every((part) => JSON.stringify(object).includes(part)),
  )

test('a ready Pod is behind its Service, in a slice and in Endpoints [GND-R51]', async () => {
  const cluster = await running()
  const { metadata } = await cluster.create(serviceNamed('web'))
  const { metadata: podMetadata } = await runPod(cluster, 'a', { ip: '10.0.0.1' })
  const [slice, ...others] = await untilSlices(cluster, '10.0.0.1', '"ready":true')
  const targetRef = { kind: 'Pod', namespace: 'team', name: 'a', uid: podMetadata.uid }
  expect(others).toEqual([])
  expect(slice).toMatchObject({
    addressType: 'IPv4',
    endpoints: [
      {
        addresses: ['10.0.0.1'],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: 'node-1',
        targetRef,
      },
    ],
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  })
  expect(slice?.metadata.name).toMatch(/^web-[a-z0-9]{5}$/)
  expect(slice?.metadata.labels).toEqual({
    team: 'a',
    'kubernetes.io/service-name': 'web',
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
  })
  expect(slice?.metadata.ownerReferences).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Service',
      name: 'web',
      uid: metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ])
  const { subsets, metadata: endpointsMetadata } = await untilEndpoints(cluster, '10.0.0.1')
  expect(subsets).toEqual([
    {
      addresses: [{ ip: '10.0.0.1', nodeName: 'node-1', targetRef }],
      ports: [{ port: 8080, protocol: 'TCP' }],
    },
  ])
  expect(endpointsMetadata.labels).toEqual({
    team: 'a',
    'endpoints.kubernetes.io/managed-by': 'endpoint-controller',
  })
})

test('readiness, end and absence of Pods are followed [GND-R51]', async () => {
  const cluster = await running()
  await cluster.create(serviceNamed('web'))
  await runPod(cluster, 'a', { ip: '10.0.0.1', ready: false })
  await untilSlices(cluster, '10.0.0.1', '"ready":false', '"serving":false')
  await untilEndpoints(cluster, 'notReadyAddresses')
  await setPod(cluster, 'a', { ip: '10.0.0.1' })
  await untilSlices(cluster, '"ready":true')
  await cluster.change(pod.kind, { namespace: 'team', name: 'a' }, ({ metadata }) => {
    metadata.finalizers = ['example.com/hold']
  })
  await cluster.delete(pod.kind, { namespace: 'team', name: 'a' })
  await untilSlices(cluster, '"ready":false', '"serving":true', '"terminating":true')
  await cluster.untilObject(
    endpoints.kind,
    web,
    (object) => !JSON.stringify(object).includes('10.0'),
  )
  await cluster.change(pod.kind, { namespace: 'team', name: 'a' }, ({ metadata }) => {
    delete metadata.finalizers
  })
  const [empty, ...others] = await cluster.until(
    endpointSlice.kind,
    slicesOf,
    (slices) => !JSON.stringify(slices).includes('10.0.0.1'),
  )
  expect(empty).toMatchObject({ endpoints: [], ports: [] })
  expect(others).toEqual([])
})

test('labels of Pods and selectors of Services decide [GND-R51]', async () => {
  const cluster = await running()
  await runPod(cluster, 'a', { ip: '10.0.0.1' })
  await cluster.create(serviceNamed('web'))
  await untilSlices(cluster, '10.0.0.1')
  await cluster.change(pod.kind, { namespace: 'team', name: 'a' }, ({ metadata }) => {
    metadata.labels = { app: 'other' }
  })
  await cluster.until(
    endpointSlice.kind,
    slicesOf,
    (slices) => !JSON.stringify(slices).includes('10.0.0.1'),
  )
  await cluster.change(service.kind, web, (object) => {
    object['spec'] = { ...(object['spec'] as object), selector: { app: 'other' } }
  })
  const slices = await untilSlices(cluster, '10.0.0.1')
  expect(slices).toHaveLength(1)
})

test('nothing is written when nothing that matters changes', async () => {
  const cluster = await running()
  await cluster.create(serviceNamed('web'))
  await runPod(cluster, 'a', { ip: '10.0.0.1' })
  await untilSlices(cluster, '10.0.0.1')
  await untilEndpoints(cluster, '10.0.0.1')
  const before = cluster.writes.length
  await cluster.change(pod.kind, { namespace: 'team', name: 'a' }, ({ metadata }) => {
    metadata.annotations = { note: 'x' }
  })
  await cluster.create(serviceNamed('next'))
  await cluster.untilObject(endpoints.kind, { namespace: 'team', name: 'next' })
  const written = cluster.writes.slice(before).filter((write) => / Endpoint/.test(write))
  expect(written).toEqual(['create EndpointSlice ', 'create Endpoints next'])
})

test('what somebody else changed is put right again', async () => {
  const cluster = await running()
  await cluster.create(serviceNamed('web'))
  await runPod(cluster, 'a', { ip: '10.0.0.1' })
  const [slice] = await untilSlices(cluster, '10.0.0.1')
  await cluster.change(
    endpointSlice.kind,
    { namespace: 'team', name: slice!.metadata.name },
    (object) => {
      object['endpoints'] = []
    },
  )
  await untilSlices(cluster, '10.0.0.1')
  await untilEndpoints(cluster, '10.0.0.1')
  await cluster.delete(endpoints.kind, web)
  const again = await untilEndpoints(cluster, '10.0.0.1')
  expect(again.metadata.name).toBe('web')
})

test('a headless Service has a label on its slices and publishes early where it says so', async () => {
  const cluster = await running()
  const spec = { clusterIP: 'None', ipFamilies: ['IPv4'], publishNotReadyAddresses: true }
  await cluster.create(serviceNamed('web', spec))
  await runPod(cluster, 'a', { ip: '10.0.0.1', ready: false })
  const [slice] = await untilSlices(cluster, '10.0.0.1')
  expect(slice).toMatchObject({
    metadata: { labels: { 'service.kubernetes.io/headless': '' } },
    endpoints: [{ conditions: { ready: true, serving: false, terminating: false } }],
  })
})

test('the zone of a node is told', async () => {
  const cluster = await running()
  await cluster.create(serviceNamed('web'))
  await runPod(cluster, 'a', { ip: '10.0.0.1' })
  await untilSlices(cluster, '10.0.0.1')
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'z1' } },
  })
  const [slice] = await untilSlices(cluster, '"zone":"z1"')
  expect(slice).toMatchObject({ endpoints: [{ zone: 'z1' }] })
})

test('at most 100 endpoints are in one slice [GND-R51]', async () => {
  const cluster = await running()
  for (let index = 0; index < 101; index += 1) {
    await runPod(cluster, `p${index}`, { ip: `10.0.1.${index}` })
  }
  await cluster.create(serviceNamed('web'))
  const isComplete = (slices: KubeObject[]) =>
    slices.flatMap((slice) => slice['endpoints'] as unknown[]).length === 101
  const slices = await cluster.until(endpointSlice.kind, slicesOf, isComplete)
  const sizes = slices.map((slice) => (slice['endpoints'] as unknown[]).length)
  expect(sizes.toSorted((a, b) => a - b)).toEqual([1, 100])
})

test('with the Service go its Endpoints and, by their owner, its slices [GND-R51]', async () => {
  const cluster = await running()
  cluster.run(createGarbageCollector({ view: cluster.view, kinds: allKinds }))
  await cluster.create(serviceNamed('web'))
  await runPod(cluster, 'a', { ip: '10.0.0.1' })
  await untilSlices(cluster, '10.0.0.1')
  await untilEndpoints(cluster, '10.0.0.1')
  await cluster.delete(service.kind, web)
  await cluster.untilGone(endpoints.kind, web)
  await cluster.until(endpointSlice.kind, slicesOf, (slices) => slices.length === 0)
  expect(await cluster.list(endpointSlice.kind, slicesOf)).toEqual([])
})

describe('hand-written Endpoints of a Service without selector', () => {
  const handWritten = (subsets: object[], labels: Record<string, string> = {}): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name: 'web',
      namespace: 'team',
      labels: { mine: 'yes', ...labels },
      annotations: { note: 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    },
    subsets,
  })
  const subset = {
    addresses: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }],
    notReadyAddresses: [{ ip: '192.0.2.2' }],
    ports: [{ name: 'http', port: 80 }],
  }

  test('are mirrored into one slice for each family [GND-R51]', async () => {
    const cluster = await running()
    await cluster.create(serviceNamed('web', { selector: undefined }))
    const { metadata } = await cluster.create(handWritten([subset]))
    const slices = await untilSlices(cluster, '192.0.2.1', '2001:db8::1')
    const ipv4 = slices.find((slice) => slice['addressType'] === 'IPv4')
    expect(slices).toHaveLength(2)
    expect(ipv4).toMatchObject({
      metadata: {
        labels: {
          mine: 'yes',
          'kubernetes.io/service-name': 'web',
          'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
        },
        annotations: { note: 'x' },
        ownerReferences: [{ kind: 'Endpoints', name: 'web', uid: metadata.uid }],
      },
      endpoints: [
        { addresses: ['192.0.2.1'], conditions: { ready: true } },
        { addresses: ['192.0.2.2'], conditions: { ready: false } },
      ],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    })
    expect(ipv4?.metadata.annotations).toEqual({ note: 'x' })
  })

  test('are followed and their mirror goes with them', async () => {
    const cluster = await running()
    await cluster.create(serviceNamed('web', { selector: undefined }))
    await cluster.create(handWritten([subset]))
    await untilSlices(cluster, '192.0.2.1')
    await cluster.change(endpoints.kind, web, (object) => {
      object['subsets'] = [{ ...subset, addresses: [{ ip: '192.0.2.9' }] }]
    })
    await untilSlices(cluster, '192.0.2.9')
    await cluster.delete(endpoints.kind, web)
    await cluster.until(endpointSlice.kind, slicesOf, (slices) => slices.length === 0)
    expect(await cluster.list(endpointSlice.kind, slicesOf)).toEqual([])
  })

  test('are left alone where a label says so, and kept when there is no Service', async () => {
    const cluster = await running()
    const skip = { 'endpointslice.kubernetes.io/skip-mirror': 'true' }
    await cluster.create(handWritten([subset], skip))
    await cluster.create(serviceNamed('web', { selector: undefined }))
    const lonely = handWritten([subset])
    await cluster.create({ ...lonely, metadata: { ...lonely.metadata, name: 'lonely' } })
    await cluster.create(serviceNamed('next'))
    await cluster.untilObject(endpoints.kind, { namespace: 'team', name: 'next' })
    expect(await cluster.list(endpointSlice.kind, slicesOf)).toEqual([])
    const kept = await cluster.get(endpoints.kind, { namespace: 'team', name: 'lonely' })
    expect(kept).toBeDefined()
  })

  test('go with their Service', async () => {
    const cluster = await running()
    await cluster.create(serviceNamed('web', { selector: undefined }))
    await cluster.create(handWritten([subset]))
    await untilSlices(cluster, '192.0.2.1')
    await cluster.delete(service.kind, web)
    await cluster.untilGone(endpoints.kind, web)
    await cluster.until(endpointSlice.kind, slicesOf, (slices) => slices.length === 0)
    expect(await cluster.get(endpoints.kind, web)).toBeUndefined()
  })
})

test('a Service that only names a host gets no endpoints', async () => {
  const cluster = await running()
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'team' },
    spec: { type: 'ExternalName', externalName: 'example.com', selector: { app: 'web' } },
  })
  await cluster.create(serviceNamed('next'))
  await cluster.untilObject(endpoints.kind, { namespace: 'team', name: 'next' })
  expect(await cluster.get(endpoints.kind, web)).toBeUndefined()
  expect(await cluster.list(endpointSlice.kind, slicesOf)).toEqual([])
})

describe('on loopback', () => {
  const marked = { ip: '127.0.0.1', labels: { 'sallyport.dev/workload': 'node-1' } }

  test('a workload of this machine is behind its Service, and nobody else is [ISS-W1]', async () => {
    const cluster = await running()
    await cluster.create(serviceNamed('web'))
    await runPod(cluster, 'forged', { ip: '127.0.0.2' })
    await runPod(cluster, 'workload', marked)
    const [slice] = await untilSlices(cluster, '127.0.0.1')
    expect(slice).toMatchObject({ endpoints: [{ addresses: ['127.0.0.1'] }] })
    const found = await untilEndpoints(cluster, '127.0.0.1')
    expect(JSON.stringify(found)).not.toContain('127.0.0.2')
  })

  test('a Service reaches no port that the workload does not declare [ISS-W6]', async () => {
    const cluster = await running()
    const ports = [
      { name: 'ssh', port: 22, targetPort: 22 },
      { name: 'web', port: 80, targetPort: 8080 },
    ]
    await cluster.create(serviceNamed('web', { ports }))
    await runPod(cluster, 'workload', marked)
    const [slice] = await untilSlices(cluster, '127.0.0.1')
    expect(slice?.['ports']).toEqual([{ name: 'web', port: 8080, protocol: 'TCP' }])
    const found = await untilEndpoints(cluster, '127.0.0.1')
    expect(found).toMatchObject({ subsets: [{ ports: [{ name: 'web', port: 8080 }] }] })
  })
})
