import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maxWork } from '../content/index.ts'
import { applyPatch, type PatchSchema } from './index.ts'

const noSchema: PatchSchema = { field: () => undefined }
const patched = (original: Record<string, unknown>, patch: unknown) =>
  applyPatch('json', patch, original, { schema: noSchema, work: maxWork() })
const add = (path: string, value: unknown) => ({ op: 'add', path, value })
const check = (path: string, value: unknown) => ({ op: 'test', path, value })

// RFC 6902, appendix A, in its order; A.6 and A.7 are move.
const appendixA: [string, Record<string, unknown>, object[], object][] = [
  ['A.1', { foo: 'bar' }, [add('/baz', 'qux')], { baz: 'qux', foo: 'bar' }],
  ['A.2', { foo: ['bar', 'baz'] }, [add('/foo/1', 'qux')], { foo: ['bar', 'qux', 'baz'] }],
  ['A.3', { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
  [
    'A.4',
    { foo: ['bar', 'qux', 'baz'] },
    [{ op: 'remove', path: '/foo/1' }],
    { foo: ['bar', 'baz'] },
  ],
  [
    'A.5',
    { baz: 'qux', foo: 'bar' },
    [{ op: 'replace', path: '/baz', value: 'boo' }],
    { baz: 'boo', foo: 'bar' },
  ],
  [
    'A.6',
    { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  ],
  [
    'A.7',
    { foo: ['all', 'grass', 'cows', 'eat'] },
    [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    { foo: ['all', 'cows', 'eat', 'grass'] },
  ],
  [
    'A.8',
    { baz: 'qux', foo: ['a', 2, 'c'] },
    [check('/baz', 'qux'), check('/foo/1', 2)],
    { baz: 'qux', foo: ['a', 2, 'c'] },
  ],
  [
    'A.10',
    { foo: 'bar' },
    [add('/child', { grandchild: {} })],
    { foo: 'bar', child: { grandchild: {} } },
  ],
  ['A.11', { foo: 'bar' }, [{ ...add('/baz', 'qux'), xyz: 123 }], { foo: 'bar', baz: 'qux' }],
  ['A.14', { '/': 9, '~1': 10 }, [check('/~01', 10)], { '/': 9, '~1': 10 }],
  ['A.16', { foo: ['bar'] }, [add('/foo/-', ['abc', 'def'])], { foo: ['bar', ['abc', 'def']] }],
]

test.each(appendixA)(
  'RFC 6902 %s: %j patched by %j is %j [GND-R57]',
  (_, original, patch, result) => {
    const input = JSON.stringify([original, patch])
    expect(patched(original, patch)).toEqual(result)
    expect(JSON.stringify([original, patch])).toBe(input)
  },
)

test.each([
  ['A.9', { baz: 'qux' }, check('/baz', 'bar'), 'operation 0 (test "/baz") failed'],
  ['A.12', { foo: 'bar' }, add('/baz/bat', 'qux'), 'nothing there leads to "/baz/bat"'],
  ['A.15', { '~1': 10 }, check('/~01', '10'), 'failed: the value there is a different one'],
  ['index', { a: [1] }, add('/a/2', 2), '"2" is no index of that list'],
  ['list key', { a: [1] }, add('/a/x', 2), '"x" is no index of that list'],
  ['removal', {}, { op: 'remove', path: '/a' }, 'there is no "/a"'],
  ['list removal', { a: [] }, { op: 'remove', path: '/a/0' }, 'there is no "/a/0"'],
  ['copy', {}, { op: 'copy', from: '/a', path: '/b' }, 'there is no "/a"'],
  ['own child', { a: {} }, { op: 'move', from: '/a', path: '/a/b' }, 'nothing there leads to'],
  ['kind', {}, { op: 'merge', path: '/a' }, 'operation 0 (merge "/a") is of an unknown kind'],
  ['pointer', {}, add('a/b', 1), '"a/b" is not a JSON pointer, it must start with "/"'],
  ['no path', {}, { op: 'add', value: 1 }, 'has no path'],
  ['root', {}, { op: 'remove', path: '' }, 'cannot be done to the whole object'],
  ['not an object', {}, { op: 'replace', path: '', value: [] }, 'does not leave an object'],
])('an operation that does not fit (%s) is a 422', (_, original, operation, message) => {
  expect(() => patched(original, [operation])).toThrow(
    expect.objectContaining({
      reason: 'Invalid',
      message: expect.stringMatching(
        /^the server rejected our request due to an error in our request: /,
      ),
    }),
  )
  expect(() => patched(original, [operation])).toThrow(message)
})

test.each([
  [{}, 'error decoding patch: a JSON patch is a list of operations'],
  [[1], 'error decoding patch: [0]: an operation is an object'],
  [[{ op: 'add', path: 1 }], 'error decoding patch: [0].path: must be a string'],
])('the patch %j is malformed', (patch, message) => {
  expect(() => patched({}, patch)).toThrow(
    expect.objectContaining({ reason: 'BadRequest', message }),
  )
})

describe('as in Kubernetes', () => {
  test('a replacement need not find anything in an object', () => {
    expect(patched({}, [{ op: 'replace', path: '/a', value: 1 }])).toEqual({ a: 1 })
  })

  test('an index may count from the end', () => {
    expect(patched({ a: [1, 2, 3] }, [{ op: 'remove', path: '/a/-1' }])).toEqual({ a: [1, 2] })
    expect(patched({ a: [1] }, [add('/a/-1', 2)])).toEqual({ a: [1, 2] })
  })

  test('a test for null is a test for absence', () => {
    expect(patched({}, [check('/a', null)])).toEqual({})
    expect(() => patched({ a: 1 }, [check('/a', null)])).toThrow('failed')
  })
})

test('more than 10,000 operations are too many', () => {
  const patch = Array.from({ length: 10_001 }, () => check('/a', null))
  expect(() => patched({}, patch)).toThrow(
    expect.objectContaining({
      reason: 'RequestEntityTooLarge',
      message:
        'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
    }),
  )
  expect(patched({}, patch.slice(1))).toEqual({})
})

test('copies cannot blow an object up', () => {
  const doubling = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }))
  expect(() => patched({ a: ['x'.repeat(100)] }, doubling)).toThrow(/larger than 3145728 bytes/)
})

/** An object with that many levels. */
const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) })

test.each([
  ['copying what is too deep already', [{ op: 'copy', from: '/deep', path: '/b' }], 1_001],
  ['moving', [{ op: 'move', from: '/deep', path: '/x/y/deep' }], 998],
  ['copying', [{ op: 'copy', from: '/deep', path: '/x/y/deep' }], 998],
  ['adding', [add('/x/y/deep', nested(998))], 1],
])('%s does not nest an object deeper than 1000 levels', (_, patch, levels) => {
  const original = { deep: nested(levels), x: { y: {} } }
  expect(() => patched(original, patch)).toThrow(/deeper than 1000 levels/)
})

test.each([
  ['adding', { op: 'add', path: '/list/0', value: 0 }],
  ['removing', { op: 'remove', path: '/list/1' }],
  ['moving', { op: 'move', from: '/list/1', path: '/list/2' }],
])('%s does not go on for ever in a long list', (_, operation) => {
  const original = { list: Array.from({ length: 20_000 }, () => 0) }
  const patch = Array.from({ length: 9_000 }, () => operation)
  expect(() => patched(original, patch)).toThrow(/more than 200000 operations/)
})

test('an object of 1000 levels is fine', () => {
  const original = { deep: nested(997), x: { y: {} } }
  const copy = [{ op: 'copy', from: '/deep', path: '/x/y/deep' }]
  expect(patched(original, copy)['x']).toEqual({ y: { deep: original.deep } })
})

test('an operation and its inverse leave the object as it was', () => {
  const key = fc.string().map((name) => name.replaceAll('~', '~0').replaceAll('/', '~1'))
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      key,
      fc.jsonValue(),
      (object, name, value) => {
        const path = `/new${name}`
        const there = [add(path, value), check(path, value)]
        fc.pre(!Object.keys(object).some((known) => known.startsWith('new')))
        expect(patched(object, [...there, { op: 'remove', path }])).toEqual(object)
      },
    ),
  )
})
