import { describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../core/index.ts'
import type { ClusterLab } from './cluster-lab.suite.ts'
import { configMap, named, namespaceObject, node, unique } from './drafts.suite.ts'

const { configMap: configMaps, node: nodes, lease: leases } = wellKnownKinds

/** Cases of what is written, read and listed. */
export function describeObjects(lab: ClusterLab): void {
  const { namespace, create, update, remove, get, list, namesIn } = lab

  describe('objects', () => {
    test('an object that is not there is undefined [GND-R85]', async () => {
      expect(await get(configMaps, { namespace, name: 'absent' })).toBeUndefined()
      expect(await get(nodes, { name: unique('absent') })).toBeUndefined()
      expect(await get(configMaps, { namespace: 'absent', name: 'absent' })).toBeUndefined()
    })

    test('a created object comes back whole and the same by get and list [GND-R85]', async () => {
      const name = unique('made')
      const made = await create(configMap(namespace, name, { k: 'v' }, { app: name }))
      expect(made).toMatchObject({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          name,
          namespace,
          labels: { app: name },
          uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
          creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
          resourceVersion: expect.stringMatching(/^\d+$/),
        },
        data: { k: 'v' },
      })
      expect(await get(configMaps, { namespace, name })).toEqual(made)
      const listed = await list(configMaps, { labelSelector: `app=${name}` })
      expect(listed.items).toEqual([made])
      expect(Number(listed.resourceVersion)).toBeGreaterThanOrEqual(
        Number(made.metadata.resourceVersion),
      )
    })

    test('an update replaces the object and moves its version [GND-R85]', async () => {
      const name = unique('changed')
      const made = await create(configMap(namespace, name, { a: '1', b: '2' }))
      const changed = await update({ ...made, data: { a: '3' } })
      expect(changed).toMatchObject({ metadata: { uid: made.metadata.uid }, data: { a: '3' } })
      expect(changed['data']).toEqual({ a: '3' })
      expect(changed.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion)
      expect(await get(configMaps, { namespace, name })).toEqual(changed)
    })

    test('an update that names no version replaces whatever is there [GND-R85]', async () => {
      const name = unique('blind')
      await create(configMap(namespace, name, { a: '1' }))
      await update(configMap(namespace, name, { a: '2' }))
      expect(await get(configMaps, { namespace, name })).toMatchObject({ data: { a: '2' } })
    })

    test('the arguments of a write are left as they were [GND-R85]', async () => {
      const draft = configMap(namespace, unique('mine'), { a: '1' })
      const before = structuredClone(draft)
      const made = await create(draft)
      await update(draft, { resourceVersion: made.metadata.resourceVersion })
      expect(draft).toEqual(before)
    })

    test('a deleted object comes back as it was last, and is gone [GND-R85]', async () => {
      const name = unique('deleted')
      const made = await create(configMap(namespace, name, { k: 'v' }))
      const target = { apiVersion: 'v1', kind: 'ConfigMap', metadata: named(namespace, name) }
      // Its version may be the one that it had, or that of its deletion.
      const { resourceVersion: _version, ...metadata } = made.metadata
      expect(await remove(target)).toMatchObject({ ...made, metadata })
      expect(await get(configMaps, { namespace, name })).toBeUndefined()
    })

    test('an object with finalizers stays, marked as deleted, until they are gone [GND-R85]', async () => {
      const name = unique('held')
      const draft = configMap(namespace, name)
      draft.metadata.finalizers = ['example.com/hold']
      await create(draft)
      const held = await remove(draft)
      expect(held.metadata.deletionTimestamp).toBeDefined()
      expect(await get(configMaps, { namespace, name })).toEqual(held)
      const { finalizers: _, ...metadata } = held.metadata
      await update({ ...held, metadata })
      expect(await get(configMaps, { namespace, name })).toBeUndefined()
    })

    test('generateName makes names that are free [GND-R85]', async () => {
      const draft = configMap(namespace, '')
      draft.metadata.generateName = 'generated-'
      const made = await Promise.all([create(draft), create(draft), create(draft)])
      const names = made.map(({ metadata }) => metadata.name)
      for (const each of names) expect(each).toMatch(/^generated-[a-z0-9]{5}$/)
      expect(new Set(names).size).toBe(3)
    })

    test('kinds without namespaces and kinds of other groups work the same [GND-R85]', async () => {
      const name = unique('node')
      const made = await create(node(name, { spec: { podCIDR: '10.9.0.0/24' } }))
      expect(made.metadata.namespace).toBeUndefined()
      expect(await get(nodes, { name })).toEqual(made)
      expect(await namesIn(nodes, { fieldSelector: `metadata.name=${name}` })).toEqual([name])
      await remove(node(name))
      const lease = await create({
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: named(namespace, name),
        spec: { holderIdentity: 'me' },
      })
      expect(await get(leases, { namespace, name })).toEqual(lease)
    })

    test('a list without a namespace has the objects of all namespaces [GND-R85]', async () => {
      const app = unique('everywhere')
      const other = unique('other')
      await create(namespaceObject(other))
      await create(configMap(namespace, 'here', {}, { app }))
      await create(configMap(other, 'there', {}, { app }))
      expect((await namesIn(configMaps, { labelSelector: `app=${app}` })).toSorted()).toEqual([
        'here',
        'there',
      ])
      expect(await namesIn(configMaps, { namespace: other, labelSelector: `app=${app}` })).toEqual([
        'there',
      ])
    })

    test('a list is whole and in order of names, however long [GND-R85]', async () => {
      const app = unique('many')
      const names = Array.from({ length: 1_203 }, (_, i) => `many-${String(i).padStart(4, '0')}`)
      for (let i = 0; i < names.length; i += 25)
        await Promise.all(
          names.slice(i, i + 25).map((each) => create(configMap(namespace, each, {}, { app }))),
        )
      expect(await namesIn(configMaps, { namespace, labelSelector: `app=${app}` })).toEqual(names)
    })
  })
}
