import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Kind, type KubeObject, silentLogger, systemClock } from '../../core/index.ts'
import { openMemoryStore } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { listObjects } from './list.ts'
import { LocalClusterView, serverUser } from './local-cluster-view.ts'
import { decodeObject } from './object-bytes.ts'
import { noLimits, QuotaStore } from './quota.ts'
import { AdmissionChain, type RegistryContext } from './registry.ts'
import { updateObject } from './update.ts'

const signal = new AbortController().signal
const writing = { user: serverUser, dryRun: false, signal }

function definitionOf(kind: string): KindDefinition {
  const found = kindDefinitions.find((definition) => definition.kind.kind === kind)
  if (!found) throw new Error(`no kind ${kind}`)
  return found
}
const configMaps = definitionOf('ConfigMap')
const namespaces = definitionOf('Namespace')

const configMap = (name: string, data: Record<string, string> = {}): KubeObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, namespace: 'default' },
  data,
})

async function openRegistry(): Promise<RegistryContext> {
  const store = openMemoryStore()
  const context: RegistryContext = {
    store,
    quota: new QuotaStore(store, noLimits, silentLogger),
    clock: systemClock,
    admissions: new AdmissionChain([]),
    hooks: [],
    newUid: randomUUID,
  }
  const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default' } }
  await createObject(context, namespaces, namespace, writing)
  return context
}

test('a created object has uid, creation time and the revision of its write [GND-R53]', async () => {
  const context = await openRegistry()
  const { object, record } = await createObject(
    context,
    configMaps,
    configMap('a', { k: 'v' }),
    writing,
  )
  expect(object.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
  expect(object.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  expect(object.metadata.resourceVersion).toBe(String(record?.revision))
  expect(record && decodeObject(configMaps.kind, record)).toEqual(object)
})

test('a second object of a name is refused as AlreadyExists', async () => {
  const context = await openRegistry()
  await createObject(context, configMaps, configMap('a'), writing)
  await expect(createObject(context, configMaps, configMap('a'), writing)).rejects.toMatchObject({
    reason: 'AlreadyExists',
    message: 'configmaps "a" already exists',
  })
})

test('of many parallel creates of one name exactly one wins [GND-R64]', async () => {
  const context = await openRegistry()
  const attempts = Array.from({ length: 10_000 }, (_, index) =>
    createObject(context, configMaps, configMap('one', { writer: String(index) }), writing).then(
      () => 'won',
      (error: { reason?: string }) => error.reason,
    ),
  )
  const outcomes = await Promise.all(attempts)
  expect(outcomes.filter((outcome) => outcome === 'won')).toHaveLength(1)
  expect(outcomes.filter((outcome) => outcome === 'AlreadyExists')).toHaveLength(9_999)
})

test('content for a namespace that does not exist is refused', async () => {
  const context = await openRegistry()
  const lost = configMap('a')
  lost.metadata.namespace = 'nowhere'
  await expect(createObject(context, configMaps, lost, writing)).rejects.toMatchObject({
    reason: 'NotFound',
    message: 'namespaces "nowhere" not found',
  })
})

test('a generated name keeps its base and is free [GND-R58]', async () => {
  const context = await openRegistry()
  const draft = configMap('')
  draft.metadata.generateName = 'gen-'
  const { object } = await createObject(context, configMaps, draft, writing)
  expect(object.metadata.name).toMatch(/^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
})

test('a stale resourceVersion is refused and changes nothing [GND-R53]', async () => {
  const context = await openRegistry()
  const { object } = await createObject(context, configMaps, configMap('a', { k: '1' }), writing)
  const key = { namespace: 'default', name: 'a' }
  const set = (value: string, resourceVersion?: string) =>
    updateObject(context, configMaps, {
      ...writing,
      key,
      mutate: (stored) => {
        const changed = { ...stored, data: { k: value } }
        if (resourceVersion === undefined) delete changed.metadata.resourceVersion
        else changed.metadata.resourceVersion = resourceVersion
        return changed
      },
    })
  await set('2')
  await expect(set('3', object.metadata.resourceVersion)).rejects.toMatchObject({
    reason: 'Conflict',
  })
  const view = new LocalClusterView(context, async (_kind, review) => review)
  expect(await view.get(configMaps.kind, key, signal)).toMatchObject({ data: { k: '2' } })
})

test('an update that changes nothing makes no revision', async () => {
  const context = await openRegistry()
  await createObject(context, configMaps, configMap('a', { k: '1' }), writing)
  const before = context.store.revision
  const key = { namespace: 'default', name: 'a' }
  const { record } = await updateObject(context, configMaps, { ...writing, key, mutate: (s) => s })
  expect(context.store.revision).toBe(before)
  expect(record?.revision).toBe(before)
})

test('updates without a resourceVersion are all applied, however many run at once', async () => {
  const context = await openRegistry()
  await createObject(context, configMaps, configMap('n', { n: '0' }), writing)
  const key = { namespace: 'default', name: 'n' }
  const bump = () =>
    updateObject(context, configMaps, {
      ...writing,
      key,
      mutate: (stored) => {
        const { n } = stored['data'] as { n: string }
        delete stored.metadata.resourceVersion
        return { ...stored, data: { n: String(Number(n) + 1) } }
      },
    })
  await Promise.all(Array.from({ length: 10 }, bump))
  const view = new LocalClusterView(context, async (_kind, review) => review)
  expect(await view.get(configMaps.kind, key, signal)).toMatchObject({ data: { n: '10' } })
})

test('a finalizer holds a deleted object until it is taken off [GND-R49]', async () => {
  const context = await openRegistry()
  const held = configMap('held')
  held.metadata.finalizers = ['example.com/hold']
  await createObject(context, configMaps, held, writing)
  const key = { namespace: 'default', name: 'held' }
  const marked = await deleteObject(context, configMaps, { ...writing, key })
  expect(marked.gone).toBe(false)
  expect(marked.object.metadata.deletionTimestamp).toBeDefined()
  await updateObject(context, configMaps, {
    ...writing,
    key,
    mutate: (stored) => {
      delete stored.metadata.finalizers
      return stored
    },
  })
  const page = await listObjects(context, configMaps, { namespace: 'default' }, signal)
  expect(page.runs.flat()).toEqual([])
})

test('the cluster lives in namespaces that cannot be deleted', async () => {
  const context = await openRegistry()
  const deletion = deleteObject(context, namespaces, { ...writing, key: { name: 'default' } })
  await expect(deletion).rejects.toMatchObject({ reason: 'Forbidden' })
})

test('pages of a list show one revision although the store changes between them [GND-R21]', async () => {
  const context = await openRegistry()
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    await createObject(context, configMaps, configMap(name), writing)
  const query = { namespace: 'default', limit: 2 }
  const first = await listObjects(context, configMaps, query, signal)
  await deleteObject(context, configMaps, { ...writing, key: { namespace: 'default', name: 'd' } })
  await createObject(context, configMaps, configMap('bb'), writing)
  const names: string[] = []
  let page = first
  for (;;) {
    names.push(
      ...page.runs.flat().map((record) => decodeObject(configMaps.kind, record).metadata.name),
    )
    expect(page.revision).toBe(first.revision)
    if (page.continue === undefined) break
    page = await listObjects(context, configMaps, { ...query, continue: page.continue }, signal)
  }
  expect(names).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(first.remaining).toBe(3)
})

test('a watch turns what selectors let go into DELETED and what they catch into ADDED [GND-R54]', async () => {
  const context = await openRegistry()
  const view = new LocalClusterView(context, async (_kind, review) => review)
  const kind: Kind = configMaps.kind
  const stop = new AbortController()
  const events = view.watch(
    kind,
    { namespace: 'default', labelSelector: 'color=red', from: String(context.store.revision) },
    stop.signal,
  )
  const seen: string[] = []
  const reading = (async () => {
    for await (const { type, object } of events) {
      seen.push(`${type} ${object.metadata.name}`)
      if (seen.length === 3) stop.abort()
    }
  })()
  const paint = (name: string, color: string) =>
    updateObject(context, configMaps, {
      ...writing,
      key: { namespace: 'default', name },
      mutate: (stored) => {
        stored.metadata.labels = { color }
        return stored
      },
    })
  await createObject(context, configMaps, configMap('x'), writing)
  await paint('x', 'red')
  await paint('x', 'blue')
  await paint('x', 'red')
  await reading
  expect(seen).toEqual(['ADDED x', 'DELETED x', 'ADDED x'])
})
