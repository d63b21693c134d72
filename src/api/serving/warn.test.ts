import { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import type { RequestCall } from './call.ts'
import { warn } from './call.ts'

/** What a client reads, over a response of HTTP/1.1, which refuses what no header can be. */
function told(...calls: string[][]): string[] {
  const response = new ServerResponse({ method: 'GET' } as ConstructorParameters<
    typeof ServerResponse
  >[0])
  for (const texts of calls) warn({ response } as RequestCall, texts)
  const values = response.getHeader('warning')
  return Array.isArray(values) ? values.map((value) => Buffer.from(value, 'latin1').toString()) : []
}

test.each([
  ['unknown field "a"', '299 - "unknown field \\"a\\""'],
  ['日本', '299 - "日本"'],
  ['a\r\nset-cookie: b\0\x7fc', '299 - "a set-cookie: b c"'],
  ['č Ċ', '299 - "č Ċ"'],
])('%j is sent as %j', (text, value) => {
  expect(told([text])).toEqual([value])
})

test('warnings of several places come together', () => {
  expect(told(['a'], [], ['b', 'c'])).toEqual(['299 - "a"', '299 - "b"', '299 - "c"'])
})

test('one long warning is sent, many are cut', () => {
  expect(told(['x'.repeat(4_096)])[0]).toHaveLength(4_096 + 8)
  const many = told(Array.from({ length: 1_000 }, () => 'x'.repeat(1_000)))
  expect(many.map((value) => value.length)).toEqual(Array.from({ length: 16 }, () => 256 + 8))
})
