import { join } from 'node:path'
import { type FileHeader, fileHeaderLength, segmentName } from './file-format.ts'
import { createDataFile, type FileOps, type OpenFile } from './file-system.ts'
import { encodeBatch, type RecordToWrite } from './record-codec.ts'

/**
 * The file grows by zeros in steps of this size: a write that changes neither length nor layout of
 * a file is on disk sooner. Measured on ext4: 1.4 times the commits per second, at less CPU time.
 */
const growthBytes = 256 * 1024
const zeros = Buffer.alloc(growthBytes)

/** The segment that commits are appended to. */
export class SegmentWriter {
  readonly #file: OpenFile
  readonly header: FileHeader
  #end: number
  #allocated: number

  private constructor(file: OpenFile, header: FileHeader, end: number, allocated: number) {
    this.#file = file
    this.header = header
    this.#end = end
    this.#allocated = allocated
  }

  /** Makes a new segment; it and its name are on disk then. */
  static async create(
    files: FileOps,
    directory: string,
    header: FileHeader,
  ): Promise<SegmentWriter> {
    const path = join(directory, segmentName(header.sequence))
    const { file } = await createDataFile(files, path, header)
    try {
      await file.sync()
    } finally {
      await file.close()
    }
    await files.syncDirectory(directory)
    return SegmentWriter.resume(files, directory, header, fileHeaderLength)
  }

  /** Goes on at `end` of a segment that exists. */
  static async resume(
    files: FileOps,
    directory: string,
    header: FileHeader,
    end: number,
  ): Promise<SegmentWriter> {
    const path = join(directory, segmentName(header.sequence))
    const file = await files.open(path, 'edit-durable')
    return new SegmentWriter(file, header, end, await file.size())
  }

  get sequence(): number {
    return this.header.sequence
  }

  /** Whether it holds no commit. */
  get isEmpty(): boolean {
    return this.#end === fileHeaderLength
  }

  /** Where the last durable batch ends. */
  get end(): number {
    return this.#end
  }

  /** Resolves when the records are on disk. After a throw the segment must not be written to again. */
  async append(records: readonly RecordToWrite[]): Promise<void> {
    const batch = encodeBatch(records, this.header, this.#end)
    const end = this.#end + batch.length
    const allocated = Math.max(this.#allocated, Math.ceil(end / growthBytes) * growthBytes)
    const padding =
      end > this.#allocated ? zeros.subarray(0, allocated - end) : zeros.subarray(0, 0)
    await this.#file.write([batch, padding], this.#end)
    this.#end = end
    this.#allocated = Math.max(this.#allocated, end + padding.length)
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}
