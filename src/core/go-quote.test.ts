import { expect, test } from 'vitest'
import { goQuote, goQuoteList } from './quote.ts'

test.each([
  ['plain', '"plain"'],
  ['a "b" \\c', '"a \\"b\\" \\\\c"'],
  ['line\nbreak\ttab', '"line\\nbreak\\ttab"'],
  ['\x00\x07\b\t\n\v\f\r\x1b\x7f', '"\\x00\\a\\b\\t\\n\\v\\f\\r\\x1b\\x7f"'],
  ['café Łukasz 日本 😀', '"café Łukasz 日本 😀"'],
  ['spaces\u00a0\u2028\u200b', '"spaces\\u00a0\\u2028\\u200b"'],
  ['right-to-left\u202e', '"right-to-left\\u202e"'],
  ['tag \u{e0001}', '"tag \\U000e0001"'],
  ['<&>', '"<&>"'],
])('%j is quoted as Go quotes it', (text, quoted) => {
  expect(goQuote(text)).toBe(quoted)
})

test('a list of strings is quoted as Go quotes it', () => {
  expect(goQuoteList(['a', 'b c'])).toBe('["a" "b c"]')
  expect(goQuoteList([])).toBe('[]')
})
