import type { StoredRecord } from '../store.ts'
import { type LostValue, structuralDamage } from './damage.ts'
import { type FileHeader, fileHeaderLength } from './file-format.ts'
import type { DataFile, OpenFile } from './file-system.ts'
import {
  batchHeaderLength,
  type FramedRecord,
  findBatchMagic,
  readBatchBody,
  readBatchHeader,
} from './record-codec.ts'
import type { EndVerdict, JournalEnd, Tail } from './synced-marker.ts'

/** What is at a place where a batch may begin. */
export type FoundBatch =
  | {
      readonly type: 'batch'
      /** False when a value fails its checksum. */
      readonly intact: boolean
      readonly records: readonly FramedRecord[]
      readonly end: number
    }
  /** Neither a batch nor the remains of one. */
  | { readonly type: 'nothing' }
  | { readonly type: 'broken' }

const scanBytes = 1024 ** 2

/** Reads the batches of a file, many small ones with one call to the system. */
export class BatchReader {
  readonly #file: OpenFile
  readonly #header: FileHeader
  readonly #windowBytes: number
  #window: Buffer = Buffer.alloc(0)
  #windowStart = 0
  #fileSize: number | undefined

  /**
   * Reads at least `windowBytes` at a time, or a batch if that is more. That is also the unit of
   * memory: one record that is still held keeps as much.
   */
  constructor(file: OpenFile, header: FileHeader, windowBytes: number) {
    this.#file = file
    this.#header = header
    this.#windowBytes = windowBytes
  }

  async batchAt(offset: number): Promise<FoundBatch> {
    const bytes = await this.#bytes(offset, batchHeaderLength)
    const header = readBatchHeader(bytes, 0, this.#header, offset)
    if (header === undefined) {
      return { type: bytes.every((byte) => byte === 0) ? 'nothing' : 'broken' }
    }
    const bodyStart = offset + batchHeaderLength
    const body = await this.#bytes(bodyStart, header.bodyLength)
    if (body.length < header.bodyLength) return { type: 'broken' }
    const records = readBatchBody(body, header.count, bodyStart)
    if (records === undefined) return { type: 'broken' }
    const intact = records.every((record) => record.intact)
    return { type: 'batch', intact, records, end: bodyStart + header.bodyLength }
  }

  /** Whether a batch header stands anywhere after `offset`. */
  async hasBatchAfter(offset: number): Promise<boolean> {
    const size = await this.#file.size()
    const buffer = Buffer.allocUnsafe(scanBytes)
    let start = Math.max(offset + 1, fileHeaderLength)
    while (start < size) {
      const bytes = buffer.subarray(0, await this.#file.read(buffer, start))
      if (bytes.length < batchHeaderLength) return false
      if (this.#hasHeader(bytes, start)) return true
      // Windows overlap, so that no header is cut in two.
      start += bytes.length - batchHeaderLength + 1
    }
    return false
  }

  /** What stands from `offset` to the end of the file. */
  async tailAt(offset: number): Promise<Tail> {
    const bytes = Buffer.alloc(Math.max(0, (await this.#file.size()) - offset))
    const tail = bytes.subarray(0, await this.#file.read(bytes, offset))
    return tailOf(tail, offset, readBatchHeader(tail, 0, this.#header, offset)?.bodyLength)
  }

  /** As `batchAt`, with what is in the file now: another process may have written to it. */
  batchAfresh(offset: number): Promise<FoundBatch> {
    this.#window = Buffer.alloc(0)
    this.#fileSize = undefined
    return this.batchAt(offset)
  }

  #hasHeader(bytes: Buffer, start: number): boolean {
    for (let at = findBatchMagic(bytes, 0); at >= 0; at = findBatchMagic(bytes, at + 1)) {
      if (readBatchHeader(bytes, at, this.#header, start + at)) return true
    }
    return false
  }

  /** Fewer bytes only at the end of the file. */
  async #bytes(offset: number, length: number): Promise<Buffer> {
    const at = offset - this.#windowStart
    if (at >= 0 && at + length <= this.#window.length) return this.#window.subarray(at, at + length)
    this.#fileSize ??= await this.#file.size()
    const left = Math.max(0, this.#fileSize - offset)
    // After a batch comes the header of the next one.
    const wanted = Math.min(Math.max(length + batchHeaderLength, this.#windowBytes), left)
    // Never reused: records keep parts of it.
    const window = Buffer.allocUnsafeSlow(wanted)
    this.#window = window.subarray(0, await this.#file.read(window, offset))
    this.#windowStart = offset
    return this.#window.subarray(0, length)
  }
}

/** Disks write whole sectors of this size, or multiples of it. */
const sectorBytes = 512

/**
 * Tells an interrupted write from damage by what is missing. Space is zeroed before it is written
 * to, so that an interrupted write leaves zeros: at the end of the batch, or in place of a sector
 * that did not make it to disk. A batch of which nothing is missing was written whole once.
 */
function tailOf(bytes: Buffer, offset: number, bodyLength: number | undefined): Tail {
  const used = usedLength(bytes)
  if (used === 0) return 'zeros'
  if (bodyLength === undefined) {
    const torn = used < batchHeaderLength || hasHole(bytes.subarray(0, used), offset)
    return torn ? 'torn' : 'damaged'
  }
  const length = batchHeaderLength + bodyLength
  const isWhole = bytes.length >= length && bytes[length - 1] !== 0
  return isWhole && !hasHole(bytes.subarray(0, length), offset) ? 'damaged' : 'torn'
}

const zeros = Buffer.alloc(4096)

/** The length of the bytes without the zeros at their end. */
export function usedLength(bytes: Buffer): number {
  let length = bytes.length
  // A segment ends in up to 256 KiB of zeros: they are skipped block by block.
  while (length >= zeros.length && zeros.equals(bytes.subarray(length - zeros.length, length))) {
    length -= zeros.length
  }
  while (length > 0 && bytes[length - 1] === 0) length--
  return length
}

function hasHole(bytes: Buffer, offset: number): boolean {
  let end = sectorBytes - (offset % sectorBytes)
  for (let start = 0; start < bytes.length; start = end, end += sectorBytes) {
    if (usedLength(bytes.subarray(start, end)) === 0) return true
  }
  return false
}

/** How a segment is read. */
export interface SegmentReading {
  /** Takes the records of one batch; returns the revision they lead to. */
  apply(records: readonly FramedRecord[]): number
  /** Where the next segment goes on; what stands after that revision was never acknowledged. */
  readonly endRevision: number | undefined
  /** Judges the place where the last segment seems to end, as of now. */
  judge(end: JournalEnd): Promise<Exclude<EndVerdict, object>>
  /** Decides about an acknowledged commit at the end that cannot be read; to throw is usual. */
  giveUp(end: JournalEnd): void
}

/** Batches of a journal are small and many. */
const windowBytes = 1024 ** 2

/** A read beside the write of a batch may see its later bytes without its first ones; the next read sees these too. */
const maxTailReads = 5

/**
 * Reads the batches of a segment in order. A place without a readable batch is the end, unless it
 * must have been readable once: then it is damage and throws `StoreDamaged`. It must have been, if
 * the marker says that it was synced, or if any later batch exists, as each is only written after
 * the one before it was synced.
 */
export async function readSegment(source: DataFile, how: SegmentReading): Promise<JournalEnd> {
  const reader = new BatchReader(source.file, source.header, windowBytes)
  let offset = fileHeaderLength
  let lastBatch: number | undefined
  let revision = source.header.revision
  while (revision !== how.endRevision) {
    let found = await reader.batchAt(offset)
    if (!isIntact(found)) {
      let tail = await reader.tailAt(offset)
      for (let reads = 1; tail === 'damaged' && reads < maxTailReads; reads++)
        tail = await reader.tailAt(offset)
      // A server may be writing here: what it had begun before the tail was read is looked at again.
      found = await reader.batchAfresh(offset)
      if (!isIntact(found)) {
        const end = { offset, lastBatch, tail }
        const isPast = how.endRevision !== undefined || (await reader.hasBatchAfter(offset))
        if (!isPast && (await how.judge(end)) === 'end') return end
        found = await reader.batchAfresh(offset)
        if (!isPast && found.type !== 'batch') {
          how.giveUp(end)
          return end
        }
      }
    }
    if (found.type !== 'batch') {
      throw structuralDamage(source.path, offset, 'an acknowledged commit cannot be read')
    }
    revision = how.apply(found.records)
    lastBatch = offset
    offset = found.end
  }
  return { offset, lastBatch, tail: 'zeros' }
}

const isIntact = (found: FoundBatch): boolean => found.type === 'batch' && found.intact

/** Makes records of what was read from one file and tells of those whose value is lost. */
export class RecordMaker {
  readonly path: string
  readonly #onLost: (lost: LostValue) => void

  constructor(path: string, onLost: (lost: LostValue) => void) {
    this.path = path
    this.#onLost = onLost
  }

  /** The record with the value that `framed` carries, or with none if that is damaged. */
  make(framed: FramedRecord, revision: number): StoredRecord {
    const { key, value, offset, length } = framed
    if (framed.intact && !framed.lost) return { key, value, revision }
    // The damaged bytes go no further: nothing that reads the record later can serve them.
    const record = { key, value: Buffer.alloc(0), revision }
    this.#onLost({ record, path: this.path, offset, length })
    return record
  }
}
