import { expect, test } from 'vitest'
import { configMap, namespace, serviceAccount } from '../kinds/index.ts'
import { LocalCluster } from './local-cluster.suite.ts'
import {
  createRootCaController,
  createServiceAccountController,
  type RootCaSource,
} from './namespace-objects.ts'

const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const account = { namespace: 'team', name: 'default' }
const roots = { namespace: 'team', name: 'kube-root-ca.crt' }

async function running(...namespaces: string[]): Promise<LocalCluster> {
  return runningWith({ pem: () => pem }, ...namespaces)
}

async function runningWith(source: RootCaSource, ...namespaces: string[]): Promise<LocalCluster> {
  const cluster = await LocalCluster.open(...namespaces)
  cluster.run(
    createServiceAccountController(cluster.view),
    createRootCaController(cluster.view, source),
  )
  return cluster
}

test('a new namespace gets its default ServiceAccount and the roots of trust [GND-R50]', async () => {
  const cluster = await running()
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } })
  await cluster.untilObject(serviceAccount.kind, account)
  const { data, metadata } = await cluster.untilObject(configMap.kind, roots)
  expect(data).toEqual({ 'ca.crt': pem })
  expect(metadata.annotations).toHaveProperty(['kubernetes.io/description'])
})

test('a namespace from before the start gets them too', async () => {
  const cluster = await running('team')
  const given = await Promise.all([
    cluster.untilObject(serviceAccount.kind, account),
    cluster.untilObject(configMap.kind, roots),
  ])
  expect(given.map(({ kind }) => kind)).toEqual(['ServiceAccount', 'ConfigMap'])
})

test.each([
  ['ServiceAccount', serviceAccount.kind, account],
  ['ConfigMap', configMap.kind, roots],
])('a deleted %s comes back [GND-R50]', async (_, kind, key) => {
  const cluster = await running('team')
  const first = await cluster.untilObject(kind, key)
  await cluster.delete(kind, key)
  const second = await cluster.untilObject(
    kind,
    key,
    ({ metadata }) => metadata.uid !== first.metadata.uid,
  )
  expect(second.metadata.uid).not.toBe(first.metadata.uid)
})

test('roots of trust that somebody changed are written again [GND-R50]', async () => {
  const cluster = await running('team')
  await cluster.untilObject(configMap.kind, roots)
  await cluster.change(configMap.kind, roots, (object) => {
    object['data'] = { 'ca.crt': 'forged', more: 'x' }
    object.metadata.labels = { mine: 'yes' }
  })
  const again = await cluster.untilObject(
    configMap.kind,
    roots,
    (object) => JSON.stringify(object['data']) === JSON.stringify({ 'ca.crt': pem }),
  )
  expect(again.metadata.labels).toEqual({ mine: 'yes' })
})

test('roots of trust that have changed reach every namespace [DISC-S14]', async () => {
  let current = pem
  let changed = (): void => {}
  const onNew = (listener: () => void): void => {
    changed = listener
  }
  const cluster = await runningWith({ pem: () => current, onNew }, 'team', 'other')
  const keys = ['team', 'other'].map((namespace) => ({ ...roots, namespace }))
  for (const key of keys) await cluster.untilObject(configMap.kind, key)
  current = pem + pem
  changed()
  for (const key of keys) {
    const found = await cluster.untilObject(
      configMap.kind,
      key,
      ({ data }) => JSON.stringify(data) !== JSON.stringify({ 'ca.crt': pem }),
    )
    expect(found['data']).toEqual({ 'ca.crt': pem + pem })
  }
})

test('a ServiceAccount that somebody completed is left as it is', async () => {
  const cluster = await running('team')
  await cluster.untilObject(serviceAccount.kind, account)
  await cluster.change(serviceAccount.kind, account, (object) => {
    object['automountServiceAccountToken'] = false
  })
  const before = cluster.writes.length
  // Once this namespace has its account, the change above has been looked at as well.
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'next' } })
  await cluster.untilObject(serviceAccount.kind, { namespace: 'next', name: 'default' })
  expect(cluster.writes.slice(before)).not.toContain('update ServiceAccount default')
})

test('a namespace on its way out gets nothing any more', async () => {
  const cluster = await running('team')
  await cluster.untilObject(serviceAccount.kind, account)
  await cluster.delete(namespace.kind, { name: 'team' })
  await cluster.delete(serviceAccount.kind, account)
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'next' } })
  await cluster.untilObject(serviceAccount.kind, { namespace: 'next', name: 'default' })
  expect(await cluster.get(serviceAccount.kind, account)).toBeUndefined()
})
