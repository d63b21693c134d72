import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoredRecord } from '../store.ts'
import { RecordIndex } from './record-index.ts'

const recordOf = (key: string, revision = 1): StoredRecord => ({
  key,
  revision,
  value: Buffer.alloc(0),
})
const sortedKeys = (keys: Iterable<string>): string[] =>
  [...keys].toSorted((a, b) => (a < b ? -1 : 1))

test('any mix of sets and removals gives what a plain map gives, in key order', () => {
  const key = fc.integer({ min: 0, max: 2000 }).map((n) => `/k/${n}`)
  const steps = fc.array(fc.tuple(fc.boolean(), key), { maxLength: 3000, size: 'max' })
  const agrees = (
    start: readonly string[],
    moves: readonly (readonly [boolean, string])[],
  ): boolean => {
    const index = new RecordIndex()
    const model = new Map<string, StoredRecord>()
    for (const each of sortedKeys(new Set(start))) model.set(each, recordOf(each))
    index.load([...model.values()])
    let revision = 1
    for (const [set, each] of moves) {
      const record = recordOf(each, ++revision)
      if (set) {
        index.set(record)
        model.set(each, record)
      } else {
        index.remove(each)
        model.delete(each)
      }
    }
    const expected = sortedKeys(model.keys()).map((each) => model.get(each))
    const found = index.runs('', undefined).flat()
    return (
      index.size === model.size &&
      found.length === expected.length &&
      found.every((record, i) => record === expected[i] && index.get(record.key) === record)
    )
  }
  expect(() =>
    fc.assert(fc.property(fc.array(key, { maxLength: 1500, size: 'max' }), steps, agrees), {
      numRuns: 40,
    }),
  ).not.toThrow()
})

test('runs stay short however keys come and go', () => {
  const index = new RecordIndex()
  for (let i = 0; i < 5000; i++) index.set(recordOf(`/k/${(i * 7919) % 5000}`))
  const lengths = index.runs('', undefined).map((run) => run.length)
  expect(Math.max(...lengths)).toBeLessThanOrEqual(128)
  for (let i = 0; i < 4900; i++) index.remove(`/k/${i}`)
  expect(index.size).toBe(100)
  expect(index.runs('', undefined).length).toBeLessThanOrEqual(6)
})

test('a write replaces one run and leaves the others and all earlier ranges alone', () => {
  const index = new RecordIndex()
  for (let i = 1000; i < 3000; i++) index.set(recordOf(`/k/${i}`))
  const before = index.runs('', undefined)
  const copies = before.map((run) => [...run])
  index.set(recordOf('/k/2000', 2))
  index.set(recordOf('/k/2000x', 3))
  index.remove('/k/2001')
  const kept = new Set(index.runs('', undefined))
  expect(before.filter((run) => !kept.has(run)).length).toBeLessThanOrEqual(2)
  expect(before).toEqual(copies)
})

test('the part of a run at the edge of a range is the same array again', () => {
  const index = new RecordIndex()
  for (let i = 0; i < 20; i++) index.set(recordOf(`/k/${String(i).padStart(2, '0')}`))
  const [first] = index.runs('/k/05', '/k/10')
  const [second] = index.runs('/k/05', '/k/10')
  expect(first).toHaveLength(5)
  expect(second).toBe(first)
})

test.each([
  ['from before the first key', '', '/k/3', 3],
  ['from between two keys', '/k/2x', '/k/5', 2],
  ['to between two keys', '/k/2', '/k/4x', 3],
  ['of nothing', '/k/4x', '/k/4y', 0],
  ['from after the last key', '/l', undefined, 0],
  ['that ends before it begins', '/k/5', '/k/2', 0],
  ['to the end', '/k/7', undefined, 3],
])('a range %s is cut at its edges', (_, from, to, count) => {
  const index = new RecordIndex()
  for (let i = 0; i < 10; i++) index.set(recordOf(`/k/${i}`))
  expect(index.runs(from, to).flat()).toHaveLength(count)
  expect(index.runs(from, to).every((run) => run.length > 0)).toBe(true)
})
