import { expect, test } from 'vitest'
import type { KubeObject, WatchEvent } from '../core/index.ts'
import { Picture } from './picture.ts'

const object = (name: string, version: string, uid = name): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid, resourceVersion: version },
})

const shown = ({ metadata }: KubeObject) => `${metadata.uid}@${metadata.resourceVersion}`

async function toldOf(...steps: (WatchEvent | KubeObject[])[]): Promise<string[]> {
  const told: string[] = []
  const picture = new Picture({
    put: (changed, previous) =>
      void told.push(`put ${shown(changed)}${previous ? ` after ${shown(previous)}` : ''}`),
    remove: (gone) => void told.push(`remove ${shown(gone)}`),
  })
  for (const step of steps) await (Array.isArray(step) ? picture.replace(step) : picture.take(step))
  return told
}

test.each<[string, (WatchEvent | KubeObject[])[], string[]]>([
  ['a list of new objects', [[object('a', '1'), object('b', '2')]], ['put a@1', 'put b@2']],
  ['the same list again', [[object('a', '1')], [object('a', '1')]], ['put a@1']],
  ['a newer version', [[object('a', '1')], [object('a', '2')]], ['put a@1', 'put a@2 after a@1']],
  ['an object that is gone', [[object('a', '1')], []], ['put a@1', 'remove a@1']],
  [
    'another object of the name',
    [[object('a', '1', 'old')], [object('a', '3', 'new')]],
    ['put old@1', 'remove old@1', 'put new@3'],
  ],
  [
    'an event that the list had already',
    [[object('a', '1')], { type: 'ADDED', object: object('a', '1') }],
    ['put a@1'],
  ],
  [
    'a deletion, with the version of the deletion',
    [[object('a', '1')], { type: 'DELETED', object: object('a', '5') }],
    ['put a@1', 'remove a@5'],
  ],
  ['a deletion of the unknown', [{ type: 'DELETED', object: object('a', '5') }], []],
  ['a bookmark', [{ type: 'BOOKMARK', object: object('', '9') }], []],
])('%s is told as it must be', async (_, steps, expected) => {
  expect(await toldOf(...steps)).toEqual(expected)
})
