import { expect, test } from 'vitest'
import type { KubeObject, WatchEvent } from '../core/index.ts'
import { type CacheOptions, type Change, cacheKey, ObjectCache } from './object-cache.ts'

const object = (name: string, version: string, uid = name): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid, resourceVersion: version },
})

const brief = (value: KubeObject | undefined) =>
  value && `${value.metadata.uid}@${value.metadata.resourceVersion}`

const written = ({ uid, before, after }: Change): string =>
  after ? `put ${brief(after)}${before ? ` after ${brief(before)}` : ''}` : `remove ${uid}`

const openCache = (options: Partial<CacheOptions<KubeObject>> = {}): ObjectCache<KubeObject> =>
  new ObjectCache<KubeObject>({
    project: (each) => each,
    equals: Object.is,
    index: () => [],
    reportsUncached: false,
    ...options,
  })

function replace(
  cache: ObjectCache<KubeObject>,
  items: readonly KubeObject[],
  version = '100',
): Change[] {
  cache.beginList()
  return listed(cache, items, version)
}

/** Takes in a list that was requested before. */
function listed(
  cache: ObjectCache<KubeObject>,
  items: readonly KubeObject[],
  version: string,
): Change[] {
  const keys = new Set(items.map(({ metadata }) => cacheKey(metadata)))
  const removed = [...cache.removeUnlisted(keys, version)].filter((each) => each !== undefined)
  return [...removed, ...items.flatMap((item) => cache.put(item, version))]
}

const deleted = (gone: KubeObject): WatchEvent => ({ type: 'DELETED', object: gone })
const modified = (changed: KubeObject): WatchEvent => ({ type: 'MODIFIED', object: changed })

test.each<[string, (WatchEvent | KubeObject[])[], string[]]>([
  ['a list of new objects', [[object('a', '1'), object('b', '2')]], ['put a@1', 'put b@2']],
  ['the same list again', [[object('a', '1')], [object('a', '1')]], ['put a@1']],
  ['a newer version', [[object('a', '1')], [object('a', '2')]], ['put a@1', 'put a@2 after a@1']],
  ['an object that is gone', [[object('a', '1')], []], ['put a@1', 'remove a']],
  [
    'another object of the name',
    [[object('a', '1', 'old')], [object('a', '3', 'new')]],
    ['put old@1', 'remove old', 'put new@3'],
  ],
  [
    'an event that the list had already',
    [[object('a', '1')], { type: 'ADDED', object: object('a', '1') }],
    ['put a@1'],
  ],
  ['a deletion', [[object('a', '1')], deleted(object('a', '5'))], ['put a@1', 'remove a']],
  ['a deletion of the unknown', [deleted(object('a', '5'))], []],
  ['a bookmark', [{ type: 'BOOKMARK', object: object('', '9') }], []],
])('%s is the changes that it must be', (_, steps, expected) => {
  const cache = openCache()
  const changes = steps.flatMap((step) =>
    Array.isArray(step) ? replace(cache, step) : cache.handle(step),
  )
  expect(changes.map(written)).toEqual(expected)
})

test('a list of a cluster that was restored counts, though its versions are older', () => {
  const cache = openCache()
  replace(cache, [object('a', '7'), object('b', '8')], '9')
  cache.applied(object('c', '10'), '9')
  const restored = replace(cache, [object('a', '2')], '3')
  expect(restored.map(written)).toEqual(['remove b', 'remove c', 'put a@2 after a@7'])
})

test('deletions of a list come before what it adds', () => {
  const cache = openCache()
  replace(cache, [object('a', '1')])
  expect(replace(cache, [object('b', '2')]).map(written)).toEqual(['remove a', 'put b@2'])
})

test('an object without a value is not cached, and its deletion is reported', () => {
  const cache = openCache({
    project: (each) => (each.metadata.name === 'a' ? each : undefined),
    reportsUncached: true,
  })
  replace(cache, [object('a', '1'), object('b', '2')])
  expect([...cache.values()].map(brief)).toEqual(['a@1'])
  expect(cache.handle(modified(object('b', '3')))).toEqual([])
  expect(cache.handle(deleted(object('b', '4', 'uid of b')))).toEqual([
    { namespace: 'ns', name: 'b', uid: 'uid of b', before: undefined, after: undefined },
  ])
})

test('an object that loses its value is gone', () => {
  let isKept = true
  const cache = openCache({ project: (each) => (isKept ? each : undefined) })
  replace(cache, [object('a', '1')])
  isKept = false
  expect(cache.handle(modified(object('a', '2'))).map(written)).toEqual(['remove a'])
  expect(cache.get('ns', 'a')).toBeUndefined()
})

test('an equal value is no change, and counts as the new version', () => {
  const cache = openCache({ equals: () => true })
  replace(cache, [object('a', '1')])
  expect(cache.handle(modified(object('a', '2')))).toEqual([])
  cache.applied(object('a', '2'), undefined)
  expect(brief(cache.get('ns', 'a'))).toBe('a@1')
})

test('values are found by namespace, name and index, as they are now', () => {
  const cache = openCache({ index: ({ metadata }) => Object.keys(metadata.labels ?? {}) })
  const labelled = (version: string, ...labels: string[]): KubeObject => {
    const { metadata, ...rest } = object('a', version)
    const pairs = labels.map((label) => [label, ''] as const)
    return { ...rest, metadata: { ...metadata, labels: Object.fromEntries(pairs) } }
  }
  const found = (term: string) => [...cache.withTerm(term)].map(brief)
  replace(cache, [labelled('1', 'x', 'y')])
  expect([found('x'), found('y'), found('z')]).toEqual([['a@1'], ['a@1'], []])
  cache.handle(modified(labelled('2', 'y', 'z')))
  expect([found('x'), found('y'), found('z')]).toEqual([[], ['a@2'], ['a@2']])
  expect([...cache.values('ns')].map(brief)).toEqual(['a@2'])
  expect([...cache.values('other')]).toEqual([])
  cache.handle(deleted(labelled('3', 'y')))
  expect([found('y'), found('z'), [...cache.values()]]).toEqual([[], [], []])
})

test('an own write counts at once, and neither older events nor its own undo or report it', () => {
  const cache = openCache()
  replace(cache, [object('a', '9')])
  cache.applied(object('a', '12'), '9')
  expect(brief(cache.get('ns', 'a'))).toBe('a@12')
  expect(cache.handle(modified(object('a', '11')))).toEqual([])
  expect(cache.handle(modified(object('a', '12')))).toEqual([])
  expect(brief(cache.get('ns', 'a'))).toBe('a@12')
  expect(cache.handle(modified(object('a', '13'))).map(written)).toEqual(['put a@13 after a@12'])
})

test('an own write survives the deletion of what was there before, and a list from before it', () => {
  const cache = openCache()
  replace(cache, [object('a', '1', 'old')])
  cache.beginList()
  cache.applied(object('a', '9', 'new'), '1')
  cache.applied(object('b', '10'), '1')
  expect(cache.handle(deleted(object('a', '5', 'old')))).toEqual([])
  expect(listed(cache, [object('a', '5', 'other')], '6')).toEqual([])
  expect([...cache.values()].map(brief)).toEqual(['new@9', 'b@10'])
  expect(replace(cache, [], '11').map(written)).toEqual(['remove new', 'remove b'])
})

test('an own write whose event has passed already changes nothing', () => {
  const cache = openCache()
  replace(cache, [])
  cache.applied(object('deleted', '7'), '8')
  cache.handle(modified(object('a', '9')))
  cache.applied(object('a', '7'), '6')
  expect([...cache.values()].map(brief)).toEqual(['a@9'])
})

test('an own delete counts at once, unless the object was created again', () => {
  const cache = openCache()
  replace(cache, [object('a', '1'), object('b', '2', 'new')])
  cache.deleted(object('a', '1'))
  cache.deleted(object('b', '1', 'old'))
  expect([...cache.values()].map(brief)).toEqual(['new@2'])
  expect(cache.handle(deleted(object('a', '3')))).toEqual([])
})

test.each<[string, KubeObject[], boolean]>([
  ['the same', [object('a', '1'), object('b', '2')], true],
  ['another version', [object('a', '1'), object('b', '3')], false],
  ['another object of the name', [object('a', '1'), object('b', '2', 'new')], false],
  ['one less', [object('a', '1')], false],
  ['one more', [object('a', '1'), object('b', '2'), object('c', '3')], false],
  ['one instead of another', [object('a', '1'), object('c', '2')], false],
])('a list with %s has exactly what is cached: %s', (_, items, expected) => {
  const cache = openCache()
  replace(cache, [object('a', '1'), object('b', '2')])
  expect(cache.hasExactly(items)).toBe(expected)
})

test('only what is cached of objects is compared', () => {
  const cache = openCache({
    project: (each) => (each.metadata.name === 'a' ? each : undefined),
    equals: (a, b) => a.metadata.name === b.metadata.name,
  })
  replace(cache, [object('a', '1'), object('b', '2')])
  expect(cache.hasExactly([object('a', '3'), object('c', '4')])).toBe(true)
  expect(cache.hasExactly([object('a', '3', 'new')])).toBe(false)
})
