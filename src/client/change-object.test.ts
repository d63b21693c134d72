import { expect, test } from 'vitest'
import type { Kind, KubeObject } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { changeObject } from './objects.ts'

const kind: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const key = { namespace: 'default', name: 'notes' }
const { signal } = new AbortController()

const notes = (data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...key },
  data,
})

const noted = async (view: FakeClusterView) => (await view.get(kind, key, signal))?.['data']

const withNote = (name: string) => (present: KubeObject | undefined) => ({
  ...(present ?? notes({})),
  data: { ...Object(present?.['data']), [name]: 'x' },
})

test('an object that is not there is created, one that is there is changed', async () => {
  const view = new FakeClusterView()
  expect(await changeObject({ view, kind, key }, withNote('a'), signal)).toBe(true)
  expect(await changeObject({ view, kind, key }, withNote('b'), signal)).toBe(true)
  expect(await noted(view)).toEqual({ a: 'x', b: 'x' })
})

test('nothing is written when there is nothing to change', async () => {
  const view = new FakeClusterView({ objects: [notes({ a: 'x' })] })
  const before = await view.get(kind, key, signal)
  expect(await changeObject({ view, kind, key }, () => undefined, signal)).toBe(false)
  expect(await view.get(kind, key, signal)).toEqual(before)
})

test.each([
  ['created it', new FakeClusterView()],
  ['changed it', new FakeClusterView({ objects: [notes({})] })],
])('a change that somebody else %s meanwhile is kept', async (_what, view) => {
  let rounds = 0
  const change = (present: KubeObject | undefined): KubeObject => {
    rounds += 1
    if (rounds === 1) view.put(notes({ theirs: 'x' }))
    return withNote('ours')(present)
  }
  await changeObject({ view, kind, key }, change, signal)
  expect(await noted(view)).toEqual({ theirs: 'x', ours: 'x' })
  expect(rounds).toBe(2)
})

test('whoever loses every race is told so in the end', async () => {
  const view = new FakeClusterView({ objects: [notes({})] })
  const change = (present: KubeObject | undefined): KubeObject => {
    view.put(notes({}))
    return withNote('ours')(present)
  }
  await expect(changeObject({ view, kind, key }, change, signal)).rejects.toMatchObject({
    reason: 'Conflict',
  })
})
