import { cpuUsage } from 'node:process'
import { expect, test } from 'vitest'
import type { KubeObject, OwnerReference } from '../../core/index.ts'
import { configMap } from '../kinds/index.ts'
import { graphNode, nodeId, OwnerGraph } from './owner-graph.ts'

const { kind } = configMap

const object = (name: string, namespace: string, owners: OwnerReference[] = []): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, uid: `uid-of-${name}`, ownerReferences: owners },
})

const owner = object('owner', 'a')
const means: OwnerReference = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: 'owner',
  uid: 'uid-of-owner',
  blockOwnerDeletion: true,
}

test.each<[string, string, Partial<OwnerReference>, number]>([
  ['that means it', 'a', {}, 1],
  ['in another version', 'a', { apiVersion: 'v2' }, 1],
  ['that does not block', 'a', { blockOwnerDeletion: false }, 0],
  ['from another namespace', 'b', {}, 0],
  ['to another kind', 'a', { kind: 'Secret' }, 0],
  ['to a kind that nobody serves', 'a', { apiVersion: 'made.up/v1', kind: 'Thing' }, 0],
  ['to another name', 'a', { name: 'other' }, 0],
])('a reference %s, from %s, holds up its deletion: %s', (_what, namespace, change, blockers) => {
  const graph = new OwnerGraph()
  graph.put(graphNode(kind, object('dependent', namespace, [{ ...means, ...change }]))!)
  expect(graph.blockersOf(owner)).toHaveLength(blockers)
})

test('an object with very many owners comes and goes in no time', () => {
  const owners = Array.from({ length: 50_000 }, (_, index) => ({ ...means, uid: `u${index}` }))
  const graph = new OwnerGraph()
  const began = cpuUsage()
  graph.put(graphNode(kind, object('dependent', 'a', owners))!)
  graph.remove(nodeId(kind, { namespace: 'a', name: 'dependent' }), 'uid-of-dependent')
  expect(cpuUsage(began).user / 1_000).toBeLessThan(3_000)
})
