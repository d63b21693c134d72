import { describe, expect, test } from 'vitest'
import { wellKnownKinds } from '../core/index.ts'
import type { ClusterLab } from './cluster-lab.suite.ts'
import { configMap, node, unique } from './drafts.suite.ts'

const { node: nodes } = wellKnownKinds

/** Cases of status and the rest of an object. */
export function describeSubresources(lab: ClusterLab): void {
  const { namespace, create, update, get } = lab

  describe('subresources', () => {
    const ready = { conditions: [{ type: 'Ready', status: 'True' }] }

    test('a write to status changes nothing but the status [GND-R85]', async () => {
      const made = await create(node(unique('node'), { spec: { providerID: 'x://1' } }))
      const sent = { ...made, spec: { providerID: 'x://1', unschedulable: true }, status: ready }
      const written = await update(sent, { subresource: 'status' })
      expect(written['status']).toMatchObject(ready)
      expect(written['spec']).toEqual(made['spec'])
      expect(await get(nodes, { name: made.metadata.name })).toEqual(written)
    })

    test('a write to the object leaves its status as it is [GND-R85]', async () => {
      const made = await create(node(unique('node')))
      const before = await update({ ...made, status: ready }, { subresource: 'status' })
      const spec = { ...(before['spec'] as object), unschedulable: true }
      const written = await update({ ...before, spec, status: {} })
      expect(written['spec']).toMatchObject({ unschedulable: true })
      expect(written['status']).toEqual(before['status'])
    })

    test('a subresource that the kind does not have is NotFound [GND-R85]', async () => {
      const made = await create(configMap(namespace, unique('plain')))
      await expect(update(made, { subresource: 'status' })).rejects.toMatchObject({
        reason: 'NotFound',
      })
    })
  })
}
