import { describe, expect, test } from 'vitest'
import { each, flag, inside, message, named, text, type Writer } from './openapi-v2-protobuf.ts'

const shown = (write: Writer, value: unknown) => write(value).toString('hex')

describe('what protobuf has on the wire', () => {
  test.each<[string, Writer, unknown, string]>([
    ['a string', text(1), 'hi', '0a026869'],
    ['a string that is not ASCII', text(1), 'é', '0a02c3a9'],
    ['a field number of two bytes', text(20), 'hi', 'a201026869'],
    ['true', flag(19), true, '980101'],
    ['false, which is left out', flag(19), false, ''],
    ['a list', each(text(2)), ['a', '', 'b'], '120161120012' + '0162'],
    ['an empty list', each(text(2)), [], ''],
    ['a message in a message', inside(2, inside(1, text(3))), 'x', '12050a031a0178'],
    ['a map', named(1, text(1)), { k: 'v' }, '0a080a016b12030a0176'],
    ['a message', message({ b: text(1), a: text(2) }), { a: '1', b: '2' }, '0a0132120131'],
    ['an absent field', message({ a: text(1) }), { a: undefined }, ''],
    [
      'an extension',
      message({ a: text(1) }, named(3, text(2))),
      { 'x-e': 'v', a: '1' },
      '0a01311a0a0a03782d651203120176',
    ],
  ])('%s', (_name, write, value, expected) => {
    expect(shown(write, value)).toBe(expected)
  })

  test('a length of more than one byte', () => {
    const long = 'x'.repeat(300)
    expect(shown(text(1), long)).toBe(`0aac02${Buffer.from(long).toString('hex')}`)
  })
})

describe('nothing is left out in silence', () => {
  test.each<[string, Writer, unknown]>([
    ['a number as a string', text(1), 1],
    ['a string as a boolean', flag(1), 'true'],
    ['a string as a list', each(text(1)), 'a'],
    ['null as a message', message({}), null],
    ['a string as a map', named(1, text(1)), 'a'],
    ['a field that the message has not', message({ a: text(1) }, named(3, text(2))), { b: '1' }],
    ['an extension where there are none', message({ a: text(1) }), { 'x-e': '1' }],
  ])('%s', (_name, write, value) => {
    expect(() => write(value)).toThrow('cannot write')
  })
})
