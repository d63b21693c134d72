import { expect, test } from 'vitest'
import { asGoStruct, goQuote, goValue } from './go-format.ts'

test.each([
  ['plain', '"plain"'],
  ['a"b\\c', '"a\\"b\\\\c"'],
  ['\u0000\u0007\b\t\n\v\f\r\u001b', '"\\x00\\a\\b\\t\\n\\v\\f\\r\\x1b"'],
  ['é😀', '"é😀"'],
  ['\u00a0\u2028\u200b', '"\\u00a0\\u2028\\u200b"'],
  ['\u{e0001}', '"\\U000e0001"'],
  ['<&>', '"<&>"'],
])('%j is quoted as Go does', (text, quoted) => {
  expect(goQuote(text)).toBe(quoted)
})

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
