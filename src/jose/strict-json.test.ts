import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isObject, member, parseJsonObject } from './strict-json.ts'

const parse = (text: string) => parseJsonObject(Buffer.from(text))

test('any object comes back as it was', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
      const text = JSON.stringify(object)
      fc.pre(!text.includes('__proto__'))
      expect(parse(text)).toEqual(JSON.parse(text))
    }),
  )
})

test('a name that comes twice is found wherever it is and however it is spelled', () => {
  const escaped = (name: string) =>
    name
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (object) => {
      const [name = ''] = Object.keys(object)
      const inside = JSON.stringify(object).slice(1, -1)
      expect(parse(`{"deep":[{${inside} ,"${escaped(name)}" : 1}]}`)).toBeUndefined()
    }),
  )
})

test.each([
  ['an array', '[]'],
  ['a string', '"a"'],
  ['null', 'null'],
  ['nothing', ''],
  ['text after it', '{} {}'],
  ['a byte order mark', '\uFEFF{}'],
  ['a member twice', '{"aud":"a","aud":"b"}'],
  ['a member twice, once escaped', '{"aud":"a","\\u0061ud":"b"}'],
  ['a prototype', '{"a":1,"__proto__":{"b":2}}'],
  ['more depth than anybody needs', `{"a":${'['.repeat(32)}${']'.repeat(32)}}`],
  ['a member twice, deep inside', '{"a":[{"b":{"c":1 , "c" : 2}}]}'],
])('%s is refused', (_name, text) => {
  expect(parse(text)).toBeUndefined()
})

test('bytes that are not UTF-8 are refused', () => {
  expect(parseJsonObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBeUndefined()
})

test.each([
  ['in different objects', '{"a":{"x":1},"b":{"x":1},"x":2}'],
  ['as a value', '{"a":"b","b":"a"}'],
  ['with brackets and colons in strings', '{"a":"{\\"a\\":1}","b":"\\"}:"}'],
  ['in a list', '{"a":["a","a"]}'],
])('the same name may come again %s', (_name, text) => {
  expect(parse(text)).toEqual(JSON.parse(text))
})

test('what every object inherits is not a member', () => {
  const object = parse('{"a":1}')
  if (!isObject(object)) throw new Error('not read')
  expect(['a', 'b', 'constructor', 'toString'].map((name) => member(object, name))).toEqual([
    1,
    undefined,
    undefined,
    undefined,
  ])
})

test('deep nesting is no danger', () => {
  expect(() => parse(`{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`)).not.toThrow()
  const usual = `{"a":${'['.repeat(31)}${']'.repeat(31)}}`
  expect(parse(usual)).toEqual(JSON.parse(usual))
})
