import { expect, test } from 'vitest'
import { PageWindows } from './limits.ts'

const held = (windows: PageWindows, user: string, count: number): boolean[] =>
  Array.from({ length: count }, () => windows.of(user).take())

test('one user gets so many places for packed pages, and another gets their own [ADDON-X19]', () => {
  const windows = new PageWindows({ perUser: 2, overall: 10 })
  expect(held(windows, 'ann', 3)).toEqual([true, true, false])
  expect(held(windows, 'bob', 3)).toEqual([true, true, false])
})

test('all users together get so many [ADDON-X19]', () => {
  const windows = new PageWindows({ perUser: 2, overall: 3 })
  expect([held(windows, 'ann', 2), held(windows, 'bob', 2), held(windows, 'eve', 1)]).toEqual([
    [true, true],
    [true, false],
    [false],
  ])
})

test('a place is one place, however often it is taken or given back [ADDON-X19]', () => {
  const windows = new PageWindows({ perUser: 1, overall: 1 })
  const place = windows.of('ann')
  const other = windows.of('ann')
  other.leave()
  expect([place.take(), place.take(), other.take()]).toEqual([true, true, false])
  place.leave()
  place.leave()
  expect([other.take(), place.take(), windows.of('bob').take()]).toEqual([true, false, false])
})
