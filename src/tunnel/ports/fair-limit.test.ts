import { expect, test } from 'vitest'
import { FairLimit } from './fair-limit.ts'

/** Lets holders in one after another, and tells who is in at the end. */
function after(limit: number, arrivals: readonly string[]): string[] {
  const places = new FairLimit(limit)
  const inside = new Map<number, string>()
  arrivals.forEach((holder, index) => {
    if (places.enter(holder, () => inside.delete(index))) inside.set(index, holder)
  })
  expect(places.taken).toBe(inside.size)
  return [...inside].map(([index, holder]) => `${holder}${index}`)
}

test.each([
  ['all while there is room', ['a', 'a', 'b'], ['a0', 'a1', 'b2']],
  ['no more of those who have most', ['a', 'a', 'a', 'a'], ['a0', 'a1', 'a2']],
  ['who has none, for the oldest of those who have most', ['a', 'a', 'a', 'b'], ['a1', 'a2', 'b3']],
  ['nobody in the place of equals', ['a', 'b', 'c', 'd'], ['a0', 'b1', 'c2']],
  ['nobody in the place of somebody with one more', ['a', 'a', 'b', 'b'], ['a0', 'a1', 'b2']],
  ['one after another until shares are even', ['a', 'a', 'a', 'b', 'b', 'c'], ['a2', 'b3', 'c5']],
])('[TUN-F18] it lets in %s', (_name, arrivals, inside) => {
  expect(after(3, arrivals)).toEqual(inside)
})

test('[TUN-F19] who has as many as one may have gives up its own oldest', () => {
  const places = new FairLimit(10, 2)
  const cut: number[] = []
  for (const index of [0, 1, 2, 3]) places.enter('a', () => cut.push(index))
  places.enter('b', () => cut.push(4))
  expect([cut, places.taken]).toEqual([[0, 1], 3])
})

test('a place that is given back is free, however often it is given back', () => {
  const places = new FairLimit(1)
  const leave = places.enter('a', () => {})
  leave?.()
  leave?.()
  expect(places.taken).toBe(0)
  expect(places.enter('b', () => {})).toBeDefined()
  expect(places.enter('c', () => {})).toBeUndefined()
})
