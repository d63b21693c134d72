import { describe, expect, test } from 'vitest'
import { parseYamlBody } from './yaml.ts'

const parse = (text: string) => parseYamlBody(Buffer.from(text))

describe('YAML is read as Kubernetes reads it [GND-R60]', () => {
  test.each([
    ['booleans of YAML 1.1', 'a: yes\nb: off', { a: true, b: false }],
    ['octal and hexadecimal', 'a: 010\nb: 0x1F\nc: 1_000', { a: 8, b: 31, c: 1000 }],
    [
      'times as text',
      'a: 2024-01-01\nb: 2024-01-01T00:00:00Z',
      {
        a: '2024-01-01',
        b: '2024-01-01T00:00:00Z',
      },
    ],
    ['sexagesimals as text', 'a: 1:30', { a: '1:30' }],
    ['keys that are no strings', '1: a\ntrue: b', { '1': 'a', true: 'b' }],
    ['an alias', 'a: &x {b: 1}\nc: *x', { a: { b: 1 }, c: { b: 1 } }],
    ['a merge key', 'a: &x {b: 1}\nc:\n  <<: *x\n  d: 2', { a: { b: 1 }, c: { b: 1, d: 2 } }],
    ['a document marker', '---\na: 1\n', { a: 1 }],
    ['nothing', '# only a comment\n', null],
    ['JSON', '{"a": ["b", null]}', { a: ['b', null] }],
  ])('%s', async (_name, text, value) => {
    expect((await parse(text)).value).toEqual(value)
  })

  test('a key named __proto__ is a key', async () => {
    const { value } = await parse('__proto__: {a: 1}\nb: 2')
    expect(JSON.stringify(value)).toBe('{"__proto__":{"a":1},"b":2}')
  })

  test('a key that is there twice is reported with its line, and the last one counts', async () => {
    const { value, duplicates } = await parse('a: 1\nb: {c: 1, c: 2}\na: 3')
    expect(value).toEqual({ a: 3, b: { c: 2 } })
    expect(duplicates).toEqual([
      'line 3: key "a" already set in map',
      'line 2: key "c" already set in map',
    ])
  })
})

describe('bad YAML is a 400 [GND-R63]', () => {
  test.each([
    ['not YAML', 'a: [1', 'line 1'],
    ['two documents', 'a: 1\n---\nb: 2', 'more than one document'],
    ['deep flow lists', '['.repeat(200_000), 'exceeded max depth'],
    ['deep flow maps', '{a: '.repeat(60_000), 'exceeded max depth'],
    ['deep block lists', '- '.repeat(100_000), 'exceeded max depth'],
    ['deep question marks', '? '.repeat(100_000), 'exceeded max depth'],
    ['an alias of itself', 'a: &a [*a]', 'excessive aliasing'],
    ['many aliases', `a: &a 1\nb: [${'*a,'.repeat(50)}]`, 'excessive aliasing'],
    [
      'aliases of aliases',
      ['a: &a [x,x,x,x]', 'b: &b [*a,*a,*a,*a]', 'c: &c [*b,*b,*b,*b]', 'd: &d [*c,*c,*c,*c]']
        .concat('e: [*d,*d,*d,*d]')
        .join('\n'),
      'excessive aliasing',
    ],
    ['a large node that is repeated', `a: &a ${'x'.repeat(5000)}\nb: [*a,*a,*a,*a]`, 'excessive'],
    ['an infinite number', 'a: .inf', 'unsupported value'],
  ])('%s', async (_name, text, message) => {
    await expect(parse(text)).rejects.toMatchObject({
      reason: 'BadRequest',
      message: expect.stringContaining(message),
    })
  })

  test.each([
    ['very many tokens', '\n'.repeat(100_000), 'more than 20000 YAML tokens'],
    ['very many bytes', ' '.repeat(300_000), 'more than 262144 bytes of YAML'],
  ])('%s are more work than YAML may cause [SEC-R502]', async (_name, text, message) => {
    await expect(parse(text)).rejects.toThrow(message)
  })

  test('text that is not UTF-8', async () => {
    await expect(parseYamlBody(Buffer.from([0x61, 0x3a, 0x20, 0xff]))).rejects.toMatchObject({
      reason: 'BadRequest',
    })
  })

  test('the deepest text that is let through does not exhaust the stack', async () => {
    const depth = 98
    const { value } = await parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    expect(JSON.stringify(value)).toHaveLength(2 * depth)
  })
})
