import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Work } from '../core/index.ts'
import {
  bytesField,
  int64Field,
  ProtobufError,
  ProtobufReader,
  tagOf,
  textField,
  uintField,
  varintBytes,
  wireType,
  writeVarint,
} from './protobuf.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

describe('what is written is read again', () => {
  test('unsigned integers of up to 53 bits', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.integer({ min: 1, max: 536_870_911 }), (value, field) => {
        fc.pre(value !== 0)
        const reader = new ProtobufReader(uintField(field, value))
        expect(reader.tag()).toBe(tagOf(field, wireType.varint))
        expect(reader.safeUint()).toBe(value)
      }),
    )
  })

  test('signed integers of 64 bits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        fc.pre(value !== 0n)
        const reader = new ProtobufReader(int64Field(1, value))
        reader.tag()
        expect(reader.int64BigInt()).toBe(value)
      }),
    )
  })

  test('texts, bytes and messages', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.uint8Array(), (text, bytes) => {
        const outer = new ProtobufReader(
          bytesField(7, textField(1, text), bytesField(2, Buffer.from(bytes))),
        )
        expect(outer.tag()).toBe(tagOf(7, wireType.bytes))
        const inner = outer.message()
        inner.tag()
        expect(inner.text()).toBe(text)
        inner.tag()
        expect(inner.bytes().equals(Buffer.from(bytes))).toBe(true)
        expect(inner.isAtEnd && outer.isAtEnd).toBe(true)
      }),
    )
  })
})

test('zero and the empty text are left out, as proto3 does', () => {
  expect([uintField(1, 0), int64Field(1, 0n), textField(1, '')]).toEqual(
    Array(3).fill(Buffer.alloc(0)),
  )
})

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
  'the number %s is not written',
  (value) => {
    expect(() => uintField(1, value)).toThrow(ProtobufError)
    expect(() => varintBytes(value)).toThrow(ProtobufError)
  },
)

test('a number is written at its place', () => {
  const out = Buffer.alloc(5)
  expect(writeVarint(out, 1, 300)).toBe(3)
  expect(out).toEqual(hex('00ac020000'))
})

describe('numbers of more than 64 bits', () => {
  test.each([
    ['eleven bytes', '8080808080808080808000'],
    ['a bit beyond the 64th', 'ffffffffffffffffff02'],
  ])('%s are refused by every reader', (_name, bytes) => {
    const read = (act: (reader: ProtobufReader) => unknown) => () =>
      act(new ProtobufReader(hex(bytes)))
    expect(read((reader) => reader.tag())).toThrow(/overflow/)
    expect(read((reader) => reader.int64())).toThrow(/overflow/)
    expect(read((reader) => reader.int32())).toThrow(/overflow/)
    expect(read((reader) => reader.bool())).toThrow(/overflow/)
    expect(read((reader) => reader.uint64())).toThrow(/overflow/)
    expect(read((reader) => reader.partialUint64())).toThrow(/overflow/)
    expect(read((reader) => reader.safeUint())).toThrow(/overflow/)
    expect(read((reader) => reader.int64BigInt())).toThrow(/overflow/)
    expect(read((reader) => reader.bytes())).toThrow(/overflow/)
    expect(read((reader) => reader.skip(wireType.varint))).toThrow(/overflow/)
  })

  test('all 64 bits are read', () => {
    const all = 'ffffffffffffffffff01'
    expect(new ProtobufReader(hex(all)).int64()).toBe(-1)
    expect(new ProtobufReader(hex(all)).int64BigInt()).toBe(-1n)
    expect(new ProtobufReader(hex(all)).uint64()).toBe(2 ** 64)
    expect(() => new ProtobufReader(hex(all)).safeUint()).toThrow(/overflow/)
  })
})

describe('malformed messages', () => {
  test.each([
    ['a field without a number', '00', (reader: ProtobufReader) => reader.tag()],
    ['a truncated number', '80', (reader: ProtobufReader) => reader.tag()],
    ['truncated bytes', '0201', (reader: ProtobufReader) => reader.bytes()],
    ['a length of 32 bits and more', '8080808010', (reader: ProtobufReader) => reader.bytes()],
    ['a text that is not UTF-8', '01ff', (reader: ProtobufReader) => reader.text()],
    ['a group without an end', '0b', (reader: ProtobufReader) => reader.skip(wireType.groupStart)],
    ['the end of no group', '', (reader: ProtobufReader) => reader.skip(wireType.groupEnd)],
    ['groups in groups', '0b'.repeat(200), (reader: ProtobufReader) => reader.skip(3)],
    ['a wire type that does not exist', '', (reader: ProtobufReader) => reader.skip(6)],
    ['a truncated fixed number', '000000', (reader: ProtobufReader) => reader.skip(5)],
  ])('%s', (_name, bytes, read) => {
    expect(() => read(new ProtobufReader(hex(bytes)))).toThrow(ProtobufError)
  })

  test('a number that has not arrived in full is not an error where that may happen', () => {
    expect(new ProtobufReader(hex('8080')).partialUint64()).toBeUndefined()
    expect(new ProtobufReader(hex('ac02')).partialUint64()).toBe(300)
  })
})

test('each field is a token of the work that a reader is given', () => {
  const limits = { tokens: 3, yamlTokens: 0, yamlBytes: 0, nodes: 0, operations: 0 }
  const fields = Buffer.concat([uintField(1, 1), bytesField(2, uintField(1, 1)), uintField(3, 1)])
  const reader = new ProtobufReader(fields, new Work(limits))
  reader.tag()
  reader.int32()
  reader.tag()
  reader.message().tag()
  expect(() => reader.tag()).toThrow(/more than 3/)
})
