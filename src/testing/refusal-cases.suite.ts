import { describe, expect, test } from 'vitest'
import type { ClusterLab } from './cluster-lab.suite.ts'
import { configMap, notServed, unique } from './drafts.suite.ts'

/** Cases of what is refused, and why. */
export function describeRefusals(lab: ClusterLab): void {
  const { namespace, create, update, remove, get, namesIn } = lab

  describe('refusals', () => {
    const absent = () => configMap(namespace, 'absent')

    test.each([
      ['an update of an object that is not there', () => update(absent()), 'NotFound'],
      ['a delete of an object that is not there', () => remove(absent()), 'NotFound'],
      [
        'an object in a namespace that is not there',
        () => create(configMap('absent', 'x')),
        'NotFound',
      ],
      ['a name that is not allowed', () => create(configMap(namespace, 'Not_Allowed')), 'Invalid'],
      [
        'a get of a kind that is not served',
        () => get(notServed, { namespace, name: 'x' }),
        'NotFound',
      ],
      ['a list of a kind that is not served', () => namesIn(notServed, { namespace }), 'NotFound'],
      [
        'a write of a kind that is not served',
        () => create({ ...absent(), apiVersion: 'nowhere.example.com/v1', kind: 'Unicorn' }),
        'NotFound',
      ],
    ])('%s is refused with its reason [GND-R85]', async (_, attempt, reason) => {
      await expect(attempt()).rejects.toMatchObject({ name: 'ApiError', reason })
    })

    test('a second object of a name is AlreadyExists and names it [GND-R85]', async () => {
      const name = unique('twice')
      await create(configMap(namespace, name))
      await expect(create(configMap(namespace, name))).rejects.toMatchObject({
        reason: 'AlreadyExists',
        message: `configmaps "${name}" already exists`,
        details: { name, kind: 'configmaps' },
      })
    })

    test('every problem of an object is told, each with its field [GND-R85]', async () => {
      const draft = configMap(namespace, 'Not_Allowed', { 'a b': '' }, { '-': 'x' })
      const error: unknown = await create(draft).catch((caught: unknown) => caught)
      const { causes } = (error as { details: { causes: { field: string }[] } }).details
      expect(causes.map(({ field }) => field).toSorted()).toEqual([
        'data[a b]',
        'metadata.labels',
        'metadata.name',
      ])
    })
  })
}
