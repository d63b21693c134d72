import { describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../core/index.ts'
import { brief, type ClusterAbilities, type ClusterLab, signal } from './cluster-lab.suite.ts'
import { configMap, namespaceObject, unique } from './drafts.suite.ts'
import { testOf } from './test-of.suite.ts'

const { configMap: configMaps, namespace: namespaces } = wellKnownKinds

/** Cases of watches. */
export function describeWatches(lab: ClusterLab, abilities: ClusterAbilities): void {
  const { namespace, create, update, remove, get, now, changesOf } = lab

  describe('watches', () => {
    test('a watch from a version tells all that came after it, in order [GND-R85]', async () => {
      const from = await now()
      const [a, b] = [unique('a'), unique('b')]
      const made = await create(configMap(namespace, a, { n: '1' }))
      const changed = await update({ ...made, data: { n: '2' } })
      await create(configMap(namespace, b))
      await remove(configMap(namespace, a))
      const seen = await changesOf(configMaps, { namespace, from }, 4)
      expect(brief(seen)).toEqual([`ADDED ${a}`, `MODIFIED ${a}`, `ADDED ${b}`, `DELETED ${a}`])
      expect(seen[0]?.object).toEqual(made)
      expect(seen[1]?.object).toEqual(changed)
      expect(seen[3]?.object).toMatchObject({ data: { n: '2' } })
      const versions = seen.map(({ object }) => Number(object.metadata.resourceVersion))
      expect(versions).toEqual(versions.toSorted((x, y) => x - y))
      expect(new Set(versions).size).toBe(4)
    })

    test('a watch can be taken up at the version of any event, deletions too [GND-R85]', async () => {
      const from = await now()
      const [a, b] = [unique('a'), unique('b')]
      await create(configMap(namespace, a))
      await remove(configMap(namespace, a))
      await create(configMap(namespace, b))
      const all = await changesOf(configMaps, { namespace, from }, 3)
      for (const [index, { object }] of all.slice(0, 2).entries()) {
        const resumed = { namespace, from: String(object.metadata.resourceVersion) }
        const rest = await changesOf(configMaps, resumed, 2 - index)
        expect(brief(rest)).toEqual(brief(all.slice(index + 1)))
      }
    })

    test('changes arrive while the watch is open [GND-R85]', async () => {
      const name = unique('live')
      const seen = changesOf(configMaps, { namespace, from: await now() }, 2)
      const made = await create(configMap(namespace, name))
      await remove(made)
      expect(brief(await seen)).toEqual([`ADDED ${name}`, `DELETED ${name}`])
    })

    test('an object that labels let in or go is ADDED or DELETED [GND-R85]', async () => {
      const name = unique('painted')
      const from = await now()
      const paint = (color: string) => update(configMap(namespace, name, {}, { color }))
      await create(configMap(namespace, name, {}, { color: 'blue' }))
      await paint('red')
      await paint('blue')
      await paint('red')
      const query = { namespace, labelSelector: 'color=red', from }
      const seen = await changesOf(configMaps, query, 3)
      expect(brief(seen)).toEqual([`ADDED ${name}`, `DELETED ${name}`, `ADDED ${name}`])
    })

    test('a watch by field tells of the chosen object only [GND-R85]', async () => {
      const from = await now()
      const [mine, other] = [unique('mine'), unique('other')]
      await create(configMap(namespace, other))
      await create(configMap(namespace, mine))
      await remove(configMap(namespace, other))
      await remove(configMap(namespace, mine))
      const query = { namespace, fieldSelector: `metadata.name=${mine}`, from }
      const seen = await changesOf(configMaps, query, 2)
      expect(brief(seen)).toEqual([`ADDED ${mine}`, `DELETED ${mine}`])
    })

    test('a watch of all namespaces and one of a cluster kind tell of theirs [GND-R85]', async () => {
      const name = unique('watched')
      const fieldSelector = `metadata.name=${name}`
      const from = await now()
      await create(namespaceObject(name))
      await create(configMap(name, name))
      const spaces = await changesOf(namespaces, { fieldSelector, from }, 1)
      expect(brief(spaces)).toEqual([`ADDED ${name}`])
      const maps = await changesOf(configMaps, { fieldSelector, from }, 1)
      expect(maps[0]?.object.metadata).toMatchObject({ namespace: name, name })
    })

    test('an abort ends a watch at once and without an error [GND-R85]', async () => {
      const stop = new AbortController()
      const query = { namespace, labelSelector: 'never=seen', from: await now() }
      const reading = (async () => {
        for await (const event of lab.view.watch(configMaps, query, stop.signal)) {
          expect(event.type).toBe('BOOKMARK')
        }
        return 'ended'
      })()
      setImmediate(() => stop.abort(new Error('enough')))
      expect(await reading).toBe('ended')
    })

    test('a reader who leaves ends the watch [GND-R85]', async () => {
      const from = await now()
      await create(configMap(namespace, unique('left')))
      for await (const event of lab.view.watch(configMaps, { namespace, from }, signal)) {
        if (event.type === 'ADDED') break
      }
      expect(await get(configMaps, { namespace, name: 'absent' })).toBeUndefined()
    })

    const { expiredVersion } = abilities
    testOf(expiredVersion)(
      'a watch from before the kept history is Expired [GND-R85]',
      async () => {
        const from = await expiredVersion!(lab.view)
        await expect(changesOf(configMaps, { namespace, from }, 1)).rejects.toMatchObject({
          reason: 'Expired',
        })
      },
    )
  })
}
