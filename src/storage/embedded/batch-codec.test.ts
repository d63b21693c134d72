import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  batchHeaderLength,
  encodeBatch,
  type RecordToWrite,
  readBatchBody,
  readBatchHeader,
  recordKinds,
} from './record-codec.ts'

const home = { salt: Buffer.alloc(16, 7) }
const offset = 12_345

const anyRecord: fc.Arbitrary<RecordToWrite> = fc.record({
  kind: fc.constantFrom(...Object.values(recordKinds)),
  key: fc.string({ unit: 'grapheme', maxLength: 60 }),
  revision: fc.maxSafeNat(),
  previousRevision: fc.maxSafeNat(),
  value: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  lost: fc.boolean(),
})

test('what is framed is read back the same', () => {
  const roundTrip = (records: readonly RecordToWrite[]): void => {
    const batch = encodeBatch(records, home, offset)
    const header = readBatchHeader(batch, 0, home, offset)
    const body = readBatchBody(batch.subarray(batchHeaderLength), records.length, offset)
    expect(header).toEqual({ bodyLength: batch.length - batchHeaderLength, count: records.length })
    expect(body).toMatchObject(records.map((record) => ({ ...record, intact: true })))
  }
  expect(() =>
    fc.assert(fc.property(fc.array(anyRecord, { maxLength: 8 }), roundTrip)),
  ).not.toThrow()
})

test('a header counts only in its own file and place', () => {
  const batch = encodeBatch([], home, offset)
  expect(readBatchHeader(batch, 0, home, offset)).toBeDefined()
  expect(readBatchHeader(batch, 0, home, offset + 8)).toBeUndefined()
  expect(readBatchHeader(batch, 0, { salt: Buffer.alloc(16, 8) }, offset)).toBeUndefined()
})
