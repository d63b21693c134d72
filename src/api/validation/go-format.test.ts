import { expect, test } from 'vitest'
import { asGoStruct, goValue } from './field-problem.ts'

test.each([
  [5, '5'],
  [true, 'true'],
  [undefined, 'null'],
  [null, 'null'],
  ['x', '"x"'],
  [['a', '<b>'], '["a","\\u003cb\\u003e"]'],
])('%j is shown as %s', (value, shown) => {
  expect(goValue(value)).toBe(shown)
})

test('a struct is shown with the names that Go has for its fields', () => {
  const names = { Kind: 'kind', TimeAdded: 'timeAdded', Name: 'name' }
  expect(asGoStruct({ kind: 'a', other: 1 }, names, { timeAdded: null })).toEqual({
    Kind: 'a',
    TimeAdded: null,
    Name: '',
  })
})
