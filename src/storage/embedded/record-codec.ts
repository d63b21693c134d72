import { crc32 } from 'node:zlib'

/** What a framed record stands for. In a checkpoint, past events carry the value they replaced. */
export const recordKinds = {
  put: 1,
  delete: 2,
  live: 3,
  pastPut: 4,
  pastDelete: 5,
  /** Closes a checkpoint; its value counts what must have come before. */
  end: 6,
} as const

type RecordKind = (typeof recordKinds)[keyof typeof recordKinds]

/** A record to be framed. */
export interface RecordToWrite {
  readonly kind: RecordKind
  readonly key: string
  readonly revision: number
  /** The revision of the key's value before; 0 when there was none. */
  readonly previousRevision: number
  readonly value: Buffer
  /** The value was lost earlier; `value` is empty and must never be served. */
  readonly lost: boolean
}

/** A record as found in a file. */
export interface FramedRecord extends RecordToWrite {
  /** False when the value fails its checksum. */
  readonly intact: boolean
  /** Where in the file the record begins. */
  readonly offset: number
  /** How many bytes it takes there. */
  readonly length: number
}

/*
 * Layout, little-endian. The first checksum covers all after it up to the end of the key, so that
 * the record's place, length and name can be trusted even when its value cannot.
 *   0 u32 checksum of header and key   4 u32 checksum of value   8 u32 value length
 *  12 u16 key length  14 u8 kind  15 u8 flags  16 f64 revision  24 f64 previous revision
 */
const headerLength = 32
const lostFlag = 1

/** The bytes that the record takes. */
export function framedLength(record: RecordToWrite): number {
  return headerLength + Buffer.byteLength(record.key) + record.value.length
}

/** Writes the record into `target` at `at`; returns where the next one goes. */
function writeRecord(target: Buffer, at: number, record: RecordToWrite): number {
  const keyEnd = at + headerLength + target.write(record.key, at + headerLength)
  target.writeUInt32LE(crc32(record.value), at + 4)
  target.writeUInt32LE(record.value.length, at + 8)
  target.writeUInt16LE(keyEnd - at - headerLength, at + 12)
  target.writeUInt8(record.kind, at + 14)
  target.writeUInt8(record.lost ? lostFlag : 0, at + 15)
  target.writeDoubleLE(record.revision, at + 16)
  target.writeDoubleLE(record.previousRevision, at + 24)
  target.writeUInt32LE(crc32(target.subarray(at + 4, keyEnd)), at)
  target.set(record.value, keyEnd)
  return keyEnd + record.value.length
}

/** Reads the record at `at`; `undefined` when there is none whose header and key are intact. */
function readRecord(source: Buffer, at: number, fileOffset: number): FramedRecord | undefined {
  if (at + headerLength > source.length) return undefined
  const keyEnd = at + headerLength + source.readUInt16LE(at + 12)
  const end = keyEnd + source.readUInt32LE(at + 8)
  if (end > source.length) return undefined
  if (crc32(source.subarray(at + 4, keyEnd)) !== source.readUInt32LE(at)) return undefined
  const kind = source.readUInt8(at + 14)
  if (!isKind(kind)) return undefined
  const value = source.subarray(keyEnd, end)
  return {
    kind,
    key: source.toString('utf8', at + headerLength, keyEnd),
    revision: source.readDoubleLE(at + 16),
    previousRevision: source.readDoubleLE(at + 24),
    value,
    lost: (source.readUInt8(at + 15) & lostFlag) !== 0,
    intact: crc32(value) === source.readUInt32LE(at + 4),
    offset: fileOffset,
    length: end - at,
  }
}

function isKind(kind: number): kind is RecordKind {
  return kind >= recordKinds.put && kind <= recordKinds.end
}

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
