import { describe, expect, test } from 'vitest'
import { maxWork } from '../content/index.ts'
import { schemaOf } from '../schema/index.ts'
import { applyPatch } from './index.ts'

const podSchema = schemaOf({ group: '', version: 'v1', kind: 'Pod' })!
const patched = (original: Record<string, unknown>, patch: unknown) =>
  applyPatch('strategic', patch, original, { schema: podSchema, work: maxWork() })

/** Names of a list of named elements. */
const names = (list: unknown) => (list as { name: string }[]).map(({ name }) => name)

const containers = (...elements: object[]) => ({ spec: { containers: elements } })
const finalizers = (...elements: string[]) => ({ metadata: { finalizers: elements } })

test.each([
  [
    'a list with a merge key merges by it',
    containers({ name: 'a', image: '1', tty: true }, { name: 'b', image: '1' }),
    containers({ name: 'a', image: '2' }),
    containers({ name: 'a', image: '2', tty: true }, { name: 'b', image: '1' }),
  ],
  [
    'a new element comes first, as in Kubernetes',
    containers({ name: 'a' }),
    containers({ name: 'b' }),
    containers({ name: 'b' }, { name: 'a' }),
  ],
  [
    '$patch: delete takes an element away',
    containers({ name: 'a' }, { name: 'b' }),
    containers({ $patch: 'delete', name: 'a' }),
    containers({ name: 'b' }),
  ],
  [
    '$patch: replace replaces the list',
    containers({ name: 'a' }, { name: 'b' }),
    containers({ name: 'c' }, { $patch: 'replace' }),
    containers({ name: 'c' }),
  ],
  [
    '$patch: merge says what happens anyway',
    containers({ name: 'a', image: '1' }),
    containers({ $patch: 'merge', name: 'a', tty: true }),
    containers({ name: 'a', image: '1', tty: true }),
  ],
  [
    '$patch: replace replaces an object',
    { metadata: { labels: { a: '1', b: '1' } } },
    { metadata: { labels: { $patch: 'replace', c: '1' } } },
    { metadata: { labels: { c: '1' } } },
  ],
  [
    '$patch: delete empties an object',
    { metadata: { labels: { a: '1' } } },
    { metadata: { labels: { $patch: 'delete' } } },
    { metadata: { labels: {} } },
  ],
  [
    'null deletes a field',
    { metadata: { labels: { a: '1', b: '1' } } },
    { metadata: { labels: { a: null } } },
    { metadata: { labels: { b: '1' } } },
  ],
  [
    'a list of scalars merges as a set where the schema says so',
    finalizers('x/a', 'x/b'),
    finalizers('x/c', 'x/a'),
    finalizers('x/c', 'x/a', 'x/b'),
  ],
  [
    'another list of scalars is replaced',
    containers({ name: 'a', args: ['1', '2'] }),
    containers({ name: 'a', args: ['3'] }),
    containers({ name: 'a', args: ['3'] }),
  ],
  [
    'a list of objects without a merge key is replaced',
    { spec: { tolerations: [{ key: 'a' }] } },
    { spec: { tolerations: [{ key: 'b' }] } },
    { spec: { tolerations: [{ key: 'b' }] } },
  ],
  [
    '$deleteFromPrimitiveList takes scalars away',
    finalizers('x/a', 'x/b', 'x/c'),
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['x/a', 'x/z'] } },
    finalizers('x/b', 'x/c'),
  ],
  [
    '$setElementOrder orders scalars',
    finalizers('x/a', 'x/b', 'x/c'),
    { metadata: { '$setElementOrder/finalizers': ['x/c', 'x/a'] } },
    finalizers('x/b', 'x/c', 'x/a'),
  ],
  [
    '$retainKeys drops what it does not list',
    { spec: { volumes: [{ name: 'v', emptyDir: {} }] } },
    {
      spec: {
        volumes: [{ $retainKeys: ['name', 'hostPath'], name: 'v', hostPath: { path: '/' } }],
      },
    },
    { spec: { volumes: [{ name: 'v', hostPath: { path: '/' } }] } },
  ],
  [
    'a field of another type is replaced',
    { metadata: { labels: 'text' } },
    { metadata: { labels: { a: '1', b: null } } },
    { metadata: { labels: { a: '1' } } },
  ],
  [
    'directives and nulls never reach the object',
    {},
    {
      metadata: {
        '$setElementOrder/finalizers': ['x/a'],
        '$deleteFromPrimitiveList/finalizers': [],
        finalizers: ['x/a'],
        labels: { a: null, b: '1', c: { $patch: 'delete' } },
      },
    },
    { metadata: { finalizers: ['x/a'], labels: { b: '1' } } },
  ],
  [
    'a new element leaves out what it asks to delete',
    containers(),
    containers({ name: 'a', env: [{ name: 'x' }, { $patch: 'delete', name: 'y' }] }),
    containers({ name: 'a', env: [{ name: 'x' }] }),
  ],
  [
    'a replaced list has no marked elements',
    { spec: { tolerations: [{ key: 'a' }] } },
    { spec: { tolerations: [{ $patch: 'replace' }, { key: 'b' }] } },
    { spec: { tolerations: [{ key: 'b' }] } },
  ],
  [
    'fields that the schema does not know merge as plain JSON',
    { unknown: { a: { b: [1] } } },
    { unknown: { a: { b: [2], c: 1 } } },
    { unknown: { a: { b: [2], c: 1 } } },
  ],
])('%s [GND-R57]', (_, original, patch, expected) => {
  const input = JSON.stringify([original, patch])
  expect(patched(original, patch)).toEqual(expected)
  expect(JSON.stringify([original, patch])).toBe(input)
})

describe('the order that kubectl apply asks for', () => {
  const live = containers({ name: 'injected' }, { name: 'a' }, { name: 'b' }, { name: 'c' })

  test.each([
    [
      'named elements are put in order, others stay before what they preceded',
      ['c', 'a', 'b'],
      ['injected', 'c', 'a', 'b'],
    ],
    [
      'an order of all elements is the result',
      ['c', 'injected', 'b', 'a'],
      ['c', 'injected', 'b', 'a'],
    ],
    ['an order of nothing known changes nothing', ['z'], ['injected', 'a', 'b', 'c']],
  ])('%s', (_, order, expected) => {
    const wanted = order.map((name) => ({ name }))
    const result = patched(live, { spec: { '$setElementOrder/containers': wanted } })
    expect(names((result['spec'] as { containers: unknown }).containers)).toEqual(expected)
  })

  test('a new element may take the place of a deleted one', () => {
    const result = patched(live, {
      spec: {
        '$setElementOrder/containers': [{ name: 'new' }, { name: 'a' }],
        containers: [
          { name: 'new' },
          { $patch: 'delete', name: 'b' },
          { $patch: 'delete', name: 'c' },
        ],
      },
    })
    expect(names((result['spec'] as { containers: unknown }).containers)).toEqual([
      'injected',
      'new',
      'a',
    ])
  })

  test('an element that is changed must be named', () => {
    const patch = {
      spec: { '$setElementOrder/containers': [{ name: 'a' }], containers: [{ name: 'b' }] },
    }
    expect(() => patched(live, patch)).toThrow(/doesn't match \$setElementOrder list/)
  })
})

test.each([
  ['a list', [], 'a strategic merge patch is an object'],
  ['an element without its key', containers({ image: '1' }), 'merge key: name'],
  ['an unknown directive', { metadata: { $patch: 'improve' } }, 'unknown patch type: "improve"'],
  ['an unknown directive in a list', containers({ $patch: 'x', name: 'a' }), 'unknown patch type'],
  ['mixed elements', { spec: { containers: [{ name: 'a' }, 'b'] } }, 'not identical'],
  ['a null element', { metadata: { finalizers: [null] } }, 'not identical'],
  ['retained keys that are no list', { metadata: { $retainKeys: 'a' } }, 'retainKeys'],
  ['a field that is not retained', { metadata: { $retainKeys: ['a'], b: 1 } }, 'retainKeys'],
  [
    'deletions that are no list',
    { metadata: { '$deleteFromPrimitiveList/a': 1 } },
    'primitive list',
  ],
  ['deletions of nothing', { metadata: { $deleteFromPrimitiveList: [] } }, 'primitive list'],
  ['an order that is no list', { metadata: { '$setElementOrder/a': 1 } }, 'setElementOrder list'],
  ['an ordered text', { metadata: { '$setElementOrder/a': [], a: 'x' } }, 'must be a list'],
])('%s is a malformed patch', (_, patch, message) => {
  const original = { metadata: { finalizers: ['x/a'] }, spec: { containers: [{ name: 'a' }] } }
  expect(() => patched(original, patch)).toThrow(
    expect.objectContaining({ reason: 'BadRequest', message: expect.stringContaining(message) }),
  )
})

test('a list of lists does not apply', () => {
  const original = { metadata: { finalizers: ['x/a'] } }
  expect(() => patched(original, { metadata: { finalizers: [['x/b']] } })).toThrow(
    expect.objectContaining({ reason: 'Invalid' }),
  )
})

test('the merge key of an element is read a few times, however long the list', () => {
  let reads = 0
  const list = Array.from({ length: 1_000 }, (_, index) => ({
    get name() {
      reads += 1
      return `n${index}`
    },
  }))
  const original = containers({ name: 'a', env: list })
  patched(original, containers({ name: 'a', env: list.toReversed() }))
  expect(reads).toBeLessThan(100 * list.length)
})

test('the result shares nothing with the patch', () => {
  const labels = { a: '1' }
  const result = patched({}, { metadata: { labels } })
  expect(result).toEqual({ metadata: { labels } })
  expect((result['metadata'] as { labels: unknown }).labels).not.toBe(labels)
})
