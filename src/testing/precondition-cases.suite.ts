import { describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../core/index.ts'
import { type ClusterLab, signal } from './cluster-lab.suite.ts'
import { configMap, unique } from './drafts.suite.ts'

const { configMap: configMaps } = wellKnownKinds

/** Cases of writes that depend on what is there. */
export function describePreconditions(lab: ClusterLab): void {
  const { namespace, create, update, remove, get } = lab

  describe('preconditions', () => {
    const wrongUid = '00000000-0000-4000-8000-000000000000'

    test.each([
      ['update', 'resourceVersion'],
      ['update', 'uid'],
      ['delete', 'resourceVersion'],
      ['delete', 'uid'],
    ] as const)(
      '%s with a stale %s is a Conflict and changes nothing [GND-R85]',
      async (op, field) => {
        const name = unique('guarded')
        const first = await create(configMap(namespace, name, { n: '1' }))
        const second = await update(configMap(namespace, name, { n: '2' }))
        const stale = {
          resourceVersion: { resourceVersion: String(first.metadata.resourceVersion) },
          uid: { uid: wrongUid },
        }[field]
        const attempt = lab.view.write(op, configMap(namespace, name, { n: '3' }), stale, signal)
        await expect(attempt).rejects.toMatchObject({ reason: 'Conflict', details: { name } })
        expect(await get(configMaps, { namespace, name })).toEqual(second)
      },
    )

    test('writes whose preconditions hold happen [GND-R85]', async () => {
      const name = unique('guarded')
      const first = await create(configMap(namespace, name, { n: '1' }))
      const { uid, resourceVersion } = first.metadata
      const second = await update(configMap(namespace, name, { n: '2' }), {
        uid,
        resourceVersion,
      })
      expect(second).toMatchObject({ data: { n: '2' } })
      const version = second.metadata.resourceVersion
      await remove(configMap(namespace, name), { uid, resourceVersion: version })
      expect(await get(configMaps, { namespace, name })).toBeUndefined()
    })

    test("the version in an update's object is a precondition too [GND-R85]", async () => {
      const name = unique('guarded')
      const first = await create(configMap(namespace, name, { n: '1' }))
      await update({ ...first, data: { n: '2' } })
      await expect(update({ ...first, data: { n: '3' } })).rejects.toMatchObject({
        reason: 'Conflict',
      })
    })

    test('of many updates of one version exactly one wins [GND-R85]', async () => {
      const name = unique('raced')
      const first = await create(configMap(namespace, name))
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          update({ ...first, data: { writer: String(i) } }).then(
            () => 'won',
            (error: { reason?: string }) => error.reason,
          ),
        ),
      )
      expect(outcomes.filter((outcome) => outcome === 'won')).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome === 'Conflict')).toHaveLength(7)
    })

    test('a delete without preconditions succeeds although others keep writing [GND-R85]', async () => {
      const name = unique('busy')
      await create(configMap(namespace, name, { n: '0' }))
      const writers = Array.from({ length: 10 }, (_, i) =>
        update(configMap(namespace, name, { n: String(i + 1) })).catch(() => undefined),
      )
      await remove(configMap(namespace, name))
      await Promise.all(writers)
      expect(await get(configMaps, { namespace, name })).toBeUndefined()
    })
  })
}
