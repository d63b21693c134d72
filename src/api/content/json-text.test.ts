import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseJson } from './json.ts'

/** Written by interop/go/protodump: texts that are not JSON, and what the real decoder says. */
const faults: readonly { text: string; error: string }[] = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/generated/syntax.json', import.meta.url), 'utf8'),
)
const parse = (text: string, maxDepth?: number) => parseJson(Buffer.from(text), undefined, maxDepth)

describe('text that is not JSON [GND-R63]', () => {
  test.each(faults.map(({ text, error }) => [text, error]))('%j: %s', (text, error) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({ reason: 'BadRequest', message: error }),
    )
  })

  test.each([
    ['an invalid byte', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['half a surrogate pair', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xe2, 0x82, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00]],
  ])('%s is not UTF-8', (_name, bytes) => {
    expect(() => parseJson(Buffer.from(bytes))).toThrow('not valid UTF-8')
  })

  test('a byte order mark is refused, as by Go', () => {
    expect(() => parse('\ufeff{}')).toThrow('looking for beginning of value')
  })
})

describe('depth [GND-R63]', () => {
  test.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('nested %s are let through up to the limit', (_name, open, close) => {
    const nested = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`
    expect(() => parse(nested(50), 50)).not.toThrow()
    expect(() => parse(nested(51), 50)).toThrow('exceeded max depth')
  })

  test('millions of open brackets cost no stack', () => {
    expect(() => parse('['.repeat(3_000_000))).toThrow('exceeded max depth')
  })

  test('brackets inside of strings do not count', () => {
    expect(parse(`"${'['.repeat(100)}"`, 5).value).toHaveLength(100)
    expect(parse(`{"\\"[[[[[[":"\\\\","b":"{{{{{{"}`, 5).value).toEqual({
      '"[[[[[[': '\\',
      b: '{{{{{{',
    })
  })
})

describe('facts about the text', () => {
  test.each([
    ['{}', 0, false],
    ['{"a":{"b":1},"c":[{"d":2}]}', 4, false],
    ['{"a":1,"a":2}', 2, false],
    ['{"a":"b:c:d","e\\":f":"g"}', 2, false],
    ['{"a":1.5}', 1, true],
    ['{"a":1e3}', 1, true],
    ['{"a":1E3}', 1, true],
    ['{"a":true,"b":false,"c":"1.5e3"}', 3, false],
  ])('%s has %i keys and a fraction: %s', (text, keys, hasFraction) => {
    expect(parse(text)).toMatchObject({ keys, hasFraction })
  })

  test.each([
    ['"\\ud800"', '\ufffd'],
    ['"\\udc00x"', '\ufffdx'],
    ['"\\ud83d\\ude00"', '\u{1f600}'],
    ['"\\ud83d\\ud83d\\ude00"', '\ufffd\u{1f600}'],
    ['"\\\\ud800"', '\\ud800'],
    ['"\\uD800\\n"', '\ufffd\n'],
  ])('half a surrogate pair in %s becomes U+FFFD', (text, value) => {
    expect(parse(text).value).toBe(value)
  })
})
