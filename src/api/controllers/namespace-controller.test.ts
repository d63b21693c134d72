import { expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { configMap, namespace, pod, secret } from '../kinds/index.ts'
import { allKinds, LocalCluster } from './local-cluster.suite.ts'
import { createNamespaceController } from './namespace-controller.ts'

const controllerOf = (cluster: LocalCluster) =>
  createNamespaceController({ view: cluster.view, clock: systemClock, kinds: allKinds })

const configMapNamed = (name: string, finalizers: string[] = []) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'doomed', finalizers },
})

test('deleting a namespace removes its content and then itself [GND-R49]', async () => {
  const cluster = await LocalCluster.open('doomed', 'other')
  cluster.run(controllerOf(cluster))
  await cluster.create(configMapNamed('a'))
  await cluster.create({ ...configMapNamed('b'), kind: 'Secret' })
  const other = { ...configMapNamed('a'), metadata: { name: 'a', namespace: 'other' } }
  await cluster.create(other)
  await cluster.delete(namespace.kind, { name: 'doomed' })
  await cluster.untilNamespaceGone('doomed')
  expect(await cluster.list(configMap.kind, { namespace: 'doomed' })).toEqual([])
  expect(await cluster.list(secret.kind, { namespace: 'doomed' })).toEqual([])
  expect(await cluster.list(configMap.kind, { namespace: 'other' })).toHaveLength(1)
})

test('many objects go as well', async () => {
  const cluster = await LocalCluster.open('doomed')
  await Promise.all(
    Array.from({ length: 200 }, (_, index) => cluster.create(configMapNamed(`c${index}`))),
  )
  await cluster.delete(namespace.kind, { name: 'doomed' })
  cluster.run(controllerOf(cluster))
  await cluster.untilNamespaceGone('doomed')
  expect(await cluster.list(configMap.kind, { namespace: 'doomed' })).toEqual([])
})

test('content whose creation was under way is not left behind [GND-R49]', async () => {
  const cluster = await LocalCluster.open('doomed')
  const late = configMapNamed('late')
  cluster.beforeWrite = async () => {
    cluster.beforeWrite = undefined
    await cluster.smuggle(configMap.kind, { ...late, metadata: { ...late.metadata, uid: 'u' } })
  }
  await cluster.delete(namespace.kind, { name: 'doomed' })
  cluster.run(controllerOf(cluster))
  await cluster.untilNamespaceGone('doomed')
  expect(cluster.writes).toContain('delete ConfigMap late')
  expect(await cluster.list(configMap.kind, { namespace: 'doomed' })).toEqual([])
})

test('a finalizer of its content holds the namespace, and its conditions say so [GND-R49]', async () => {
  const cluster = await LocalCluster.open('doomed')
  cluster.run(controllerOf(cluster))
  await cluster.create(configMapNamed('held', ['example.com/hold']))
  await cluster.create(configMapNamed('free'))
  await cluster.delete(namespace.kind, { name: 'doomed' })
  const waiting = await cluster.untilObject(namespace.kind, { name: 'doomed' }, (object) =>
    JSON.stringify(object).includes('SomeFinalizersRemain'),
  )
  expect(waiting['status']).toMatchObject({
    phase: 'Terminating',
    conditions: [
      { type: 'NamespaceDeletionDiscoveryFailure', status: 'False', reason: 'ResourcesDiscovered' },
      { type: 'NamespaceDeletionGroupVersionParsingFailure', status: 'False' },
      { type: 'NamespaceDeletionContentFailure', status: 'False', reason: 'ContentDeleted' },
      {
        type: 'NamespaceContentRemaining',
        status: 'True',
        reason: 'SomeResourcesRemain',
        message: 'Some resources are remaining: configmaps. has 1 resource instances',
      },
      {
        type: 'NamespaceFinalizersRemaining',
        status: 'True',
        reason: 'SomeFinalizersRemain',
        message:
          'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
      },
    ],
  })
  await cluster.change(configMap.kind, { namespace: 'doomed', name: 'held' }, ({ metadata }) => {
    delete metadata.finalizers
  })
  await cluster.untilNamespaceGone('doomed')
})

test('pods go before what they may use', async () => {
  const cluster = await LocalCluster.open('doomed')
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'doomed', finalizers: ['example.com/hold'] },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  })
  await cluster.create(configMapNamed('used'))
  cluster.run(controllerOf(cluster))
  await cluster.delete(namespace.kind, { name: 'doomed' })
  await cluster.untilObject(namespace.kind, { name: 'doomed' }, (object) =>
    JSON.stringify(object).includes('pods. has 1 resource instances'),
  )
  expect(await cluster.get(configMap.kind, { namespace: 'doomed', name: 'used' })).toBeDefined()
  await cluster.change(pod.kind, { namespace: 'doomed', name: 'p' }, ({ metadata }) => {
    delete metadata.finalizers
  })
  await cluster.untilNamespaceGone('doomed')
})

test("another's finalizer of the namespace itself is left alone", async () => {
  const cluster = await LocalCluster.open()
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'doomed' },
    spec: { finalizers: ['example.com/other'] },
  })
  cluster.run(controllerOf(cluster))
  await cluster.delete(namespace.kind, { name: 'doomed' })
  const left = await cluster.untilObject(
    namespace.kind,
    { name: 'doomed' },
    (object) => !JSON.stringify(object['spec']).includes('"kubernetes"'),
  )
  expect(left['spec']).toEqual({ finalizers: ['example.com/other'] })
})
