import type { OpenFile } from '../disk/file-ops.ts'
import {
  batchHeaderLength,
  findBatchMagic,
  readBatchBody,
  readBatchHeader,
} from '../format/batch-codec.ts'
import { type FileHeader, fileHeaderLength } from '../format/file-header.ts'
import type { FramedRecord } from '../format/record-codec.ts'

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

  /** Reads afresh from now on: somebody else may have written to the file. */
  forgetWindow(): void {
    this.#window = Buffer.alloc(0)
    this.#fileSize = undefined
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
