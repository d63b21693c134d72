import { crc32 } from 'node:zlib'
import {
  type FramedRecord,
  framedLength,
  type RecordToWrite,
  readRecord,
  writeRecord,
} from './record-codec.ts'

/*
 * A batch is what was written with one call: all of it was acknowledged, or none. Its header,
 * little-endian:
 *   0 u32 magic   4 u32 checksum of what follows, started with the file's salt
 *   8 f64 offset of the batch in its file  16 u32 length of the body  20 u32 number of records
 * Salt and offset make a header unforgeable by a value that contains the bytes of one.
 */
export const batchHeaderLength = 24
const magic = Buffer.from('SPB\x01', 'latin1')

/** The file that a batch belongs to. */
export interface BatchHome {
  readonly salt: Buffer
}

/** A batch as announced by its header. */
export interface BatchHeader {
  readonly bodyLength: number
  readonly count: number
}

/** Frames the records as the batch at `offset`. */
export function encodeBatch(
  records: readonly RecordToWrite[],
  home: BatchHome,
  offset: number,
): Buffer {
  const bodyLength = records.reduce((sum, record) => sum + framedLength(record), 0)
  const batch = Buffer.allocUnsafe(batchHeaderLength + bodyLength)
  magic.copy(batch)
  batch.writeDoubleLE(offset, 8)
  batch.writeUInt32LE(bodyLength, 16)
  batch.writeUInt32LE(records.length, 20)
  batch.writeUInt32LE(headerChecksum(batch, 0, home), 4)
  let at = batchHeaderLength
  for (const record of records) at = writeRecord(batch, at, record)
  return batch
}

/** The header at `at` of `source`, which came from `offset` of its file; `undefined` if it is none. */
export function readBatchHeader(
  source: Buffer,
  at: number,
  home: BatchHome,
  offset: number,
): BatchHeader | undefined {
  if (at + batchHeaderLength > source.length) return undefined
  if (source.compare(magic, 0, magic.length, at, at + magic.length) !== 0) return undefined
  if (headerChecksum(source, at, home) !== source.readUInt32LE(at + 4)) return undefined
  if (source.readDoubleLE(at + 8) !== offset) return undefined
  return { bodyLength: source.readUInt32LE(at + 16), count: source.readUInt32LE(at + 20) }
}

/** The records of a batch's body; `undefined` when headers are damaged. `offset`: of the body. */
export function readBatchBody(
  body: Buffer,
  count: number,
  offset: number,
): readonly FramedRecord[] | undefined {
  const records: FramedRecord[] = []
  let at = 0
  for (let i = 0; i < count; i++) {
    const record = readRecord(body, at, offset + at)
    if (record === undefined) return undefined
    records.push(record)
    at += record.length
  }
  return at === body.length ? records : undefined
}

/** The offset of the first possible batch header in `source` from `at` on, or -1. */
export function findBatchMagic(source: Buffer, at: number): number {
  return source.indexOf(magic, at)
}

function headerChecksum(source: Buffer, at: number, home: BatchHome): number {
  return crc32(source.subarray(at + 8, at + batchHeaderLength), crc32(home.salt))
}
