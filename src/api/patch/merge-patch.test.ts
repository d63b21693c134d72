import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isRecord } from '../../core/index.ts'
import { maxWork } from '../content/index.ts'
import { applyPatch, type PatchSchema } from './index.ts'

const noSchema: PatchSchema = { field: () => undefined }
const patched = (original: Record<string, unknown>, patch: unknown) =>
  applyPatch('merge', patch, original, { schema: noSchema, work: maxWork() })

// RFC 7396, appendix A, as far as the document is an object.
test.each([
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])('%j merged with %j is %j [GND-R57]', (original, patch, expected) => {
  expect(patched(original, patch)).toEqual(expected)
})

test.each([[[]], ['text'], [1], [null]])('the merge patch %j is malformed', (patch) => {
  expect(() => patched({}, patch)).toThrow(expect.objectContaining({ reason: 'BadRequest' }))
})

const json = fc.jsonValue({ maxDepth: 3 })
const object = fc.dictionary(fc.string(), json)

/** The merge patch that leads from one object to another. */
function difference(from: Record<string, unknown>, to: Record<string, unknown>): object {
  const removed = Object.keys(from).filter((key) => !Object.hasOwn(to, key))
  return Object.fromEntries([
    ...removed.map((key) => [key, null]),
    ...Object.entries(to).map(([key, value]) => {
      const before = Object.hasOwn(from, key) ? from[key] : undefined
      return [key, isRecord(before) && isRecord(value) ? difference(before, value) : value]
    }),
  ])
}

/** Null stands for absence in a patch, so no patch can lead to it. */
const withoutNull = (target: Record<string, unknown>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(target, (_key, value: unknown) => value ?? 'none'))

test('the difference of two objects leads from one to the other', () => {
  fc.assert(
    fc.property(object, object.map(withoutNull), (from, to) => {
      expect(patched(from, difference(from, to))).toEqual(to)
    }),
  )
})

test('a second application changes nothing, and neither changes the input', () => {
  fc.assert(
    fc.property(object, object, (original, patch) => {
      const input = JSON.stringify([original, patch])
      const once = patched(original, patch)
      expect(patched(once, patch)).toEqual(once)
      expect(JSON.stringify([original, patch])).toBe(input)
    }),
  )
})

test.each(['merge', 'strategic', 'json'] as const)(
  'a %s patch with the key __proto__ changes no prototype',
  (type) => {
    const evil: unknown = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
    )
    const patch =
      type === 'json'
        ? [
            { op: 'add', path: '/__proto__', value: { polluted: true } },
            { op: 'add', path: '/constructor', value: {} },
            { op: 'add', path: '/constructor/prototype', value: { polluted: true } },
          ]
        : evil
    const result = applyPatch(type, patch, { a: {} }, { schema: noSchema, work: maxWork() })
    expect(result['polluted']).toBeUndefined()
    expect({}).not.toHaveProperty('polluted')
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect(Object.keys(result).toSorted()).toEqual(['__proto__', 'a', 'constructor'])
  },
)

test('a JSON patch cannot step into what an object inherits', () => {
  const patch = [{ op: 'add', path: '/constructor/prototype/polluted', value: true }]
  expect(() => applyPatch('json', patch, {}, { schema: noSchema, work: maxWork() })).toThrow(
    /nothing there leads to/,
  )
  expect({}).not.toHaveProperty('polluted')
})
