import { beforeAll, describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../core/index.ts'
import type { ClusterLab } from './cluster-lab.suite.ts'
import { configMap, secret, unique } from './drafts.suite.ts'

const { configMap: configMaps, secret: secrets } = wellKnownKinds

/** Cases of lists of some objects. */
export function describeSelectors(lab: ClusterLab): void {
  const { namespace, create, namesIn } = lab

  describe('selectors', () => {
    let app: string
    beforeAll(async () => {
      app = unique('select')
      await create(configMap(namespace, `${app}-a`, {}, { app, tier: 'front' }))
      await create(configMap(namespace, `${app}-b`, {}, { app, tier: 'back' }))
      await create(configMap(namespace, `${app}-c`, {}, { app }))
    })

    test.each([
      ['tier=front', ['a']],
      ['tier!=front', ['b', 'c']],
      ['tier', ['a', 'b']],
      ['!tier', ['c']],
      ['tier in (front, back)', ['a', 'b']],
      ['tier notin (back)', ['a', 'c']],
    ])('a list by the labels %s has only what matches [GND-R85]', async (selector, expected) => {
      const query = { namespace, labelSelector: `app=${app},${selector}` }
      expect(await namesIn(configMaps, query)).toEqual(expected.map((end) => `${app}-${end}`))
    })

    test('a list by fields has only what matches [GND-R85]', async () => {
      const byName = { namespace, fieldSelector: `metadata.name=${app}-b` }
      expect(await namesIn(configMaps, byName)).toEqual([`${app}-b`])
      await create(secret(namespace, `${app}-typed`, 'example.com/typed'))
      await create(secret(namespace, `${app}-plain`, 'Opaque'))
      const byType = { namespace, fieldSelector: 'type=example.com/typed' }
      expect(await namesIn(secrets, byType)).toEqual([`${app}-typed`])
    })

    test.each([
      ['label', { labelSelector: 'a in (b' }],
      ['field', { fieldSelector: 'spec.unknown=1' }],
    ])('a %s selector that cannot be understood is a BadRequest [GND-R85]', async (_, query) => {
      await expect(namesIn(configMaps, query)).rejects.toMatchObject({ reason: 'BadRequest' })
    })
  })
}
