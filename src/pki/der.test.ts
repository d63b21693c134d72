import { describe, expect, test } from 'vitest'
import { readExtensions, readName } from './certificate.ts'
import { attribute, der, distinguishedName, extension, oid } from './certificate-lab.suite.ts'
import { DerInvalid, derChildren, derOid, readDer } from './der.ts'

const bytes = (hex: string) => Buffer.from(hex, 'hex')

describe('DER', () => {
  test('a value has its tag, its content and its children', () => {
    const value = readDer(bytes('3006 0201 05 0101 ff'.replaceAll(' ', '')))
    expect(value.tag).toBe(0x30)
    expect(derChildren(value).map(({ tag, content }) => [tag, content.toString('hex')])).toEqual([
      [2, '05'],
      [1, 'ff'],
    ])
  })

  test('lengths of two and three bytes are read', () => {
    expect(readDer(der(0x04, Buffer.alloc(200))).content.length).toBe(200)
    expect(readDer(der(0x04, Buffer.alloc(60_000))).content.length).toBe(60_000)
  })

  test.each([
    ['nothing', ''],
    ['a tag alone', '30'],
    ['a content that is cut off', '0403aabb'],
    ['bytes after the end', '040100ff'],
    ['a length that could be shorter', '048101ff'],
    ['a long length that could be shorter', `04820080${'00'.repeat(128)}`],
    ['an endless length', '0480ff0000'],
    ['a length of five bytes', '0485000000000100'],
    ['a length that is cut off', '0482ff'],
    ['a tag of several bytes', '1f810100'],
  ])('%s is refused', (_name, hex) => {
    expect(() => readDer(bytes(hex))).toThrow(DerInvalid)
  })

  test('a child that reaches beyond its parent is refused', () => {
    expect(() => derChildren(readDer(bytes('30030403aa')))).toThrow(DerInvalid)
  })
})

describe('an object identifier', () => {
  test.each([
    ['550403', '2.5.4.3'],
    ['2a864886f70d01010b', '1.2.840.113549.1.1.11'],
    ['883703', '2.999.3'],
    ['00', '0.0'],
  ])('%s is %s', (hex, dotted) => {
    expect(derOid(readDer(oid(hex)))).toBe(dotted)
  })

  test.each([
    ['nothing', ''],
    ['a part without an end', '5584'],
    ['a padded part', '558003'],
    ['a part beyond reason', '55ffffffffffffffff7f'],
  ])('%s is refused', (_name, hex) => {
    expect(() => derOid(readDer(oid(hex)))).toThrow(DerInvalid)
  })
})

test.each([
  ['half a character of BMPString', attribute('CN', Buffer.from([0, 0x4a, 0]), 0x1e)],
  ['a lone surrogate in BMPString', attribute('CN', Buffer.from([0xd8, 0]), 0x1e)],
  ['broken UTF-8', attribute('CN', Buffer.from([0xc3, 0x28]))],
  ['letters above ASCII in PrintableString', attribute('CN', Buffer.from([0xfc]), 0x13)],
  ['a number instead of a string', attribute('O', Buffer.from([1]), 0x02)],
  ['an attribute without a value', der(0x30, oid('550403'))],
])('a name with %s is refused', (_name, bad) => {
  expect(() => readName(readDer(distinguishedName([bad])))).toThrow(DerInvalid)
})

test('an extension that is there twice is refused', () => {
  const one = extension(oid('551d11'), false, der(0x30))
  expect(readExtensions(readDer(der(0x30, one)))).toHaveLength(1)
  expect(() => readExtensions(readDer(der(0x30, one, one)))).toThrow(DerInvalid)
})
