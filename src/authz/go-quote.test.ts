import { expect, test } from 'vitest'
import { quote, quoteList } from './go-quote.ts'

test.each([
  ['plain', '"plain"'],
  ['a "b" \\c', '"a \\"b\\" \\\\c"'],
  ['line\nbreak\ttab', '"line\\nbreak\\ttab"'],
  ['bell\x07 nul\x00 del\x7f', '"bell\\a nul\\x00 del\\x7f"'],
  ['café Łukasz 日本', '"café Łukasz 日本"'],
  ['non-breaking\u00a0space', '"non-breaking\\u00a0space"'],
  ['right-to-left\u202e', '"right-to-left\\u202e"'],
  ['tag \u{e0001}', '"tag \\U000e0001"'],
])('%j is quoted as Go quotes it', (text, quoted) => {
  expect(quote(text)).toBe(quoted)
})

test('a list of strings is quoted as Go quotes it', () => {
  expect(quoteList(['a', 'b c'])).toBe('["a" "b c"]')
  expect(quoteList([])).toBe('[]')
})
