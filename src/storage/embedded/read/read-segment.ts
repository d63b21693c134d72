import { structuralDamage } from '../damage.ts'
import type { DataFile } from '../disk/data-file.ts'
import { fileHeaderLength } from '../format/file-header.ts'
import type { FramedRecord } from '../format/record-codec.ts'
import { BatchReader } from './batch-reader.ts'

/** Where the batches of a segment end. */
export interface SegmentEnd {
  readonly offset: number
  /** The start of the last batch, if there is any. */
  readonly lastBatch: number | undefined
  /** Something stands there that nobody was told of: a commit that a crash cut short. */
  readonly torn: boolean
}

/** How a segment is read. */
export interface SegmentReading {
  /** Takes the records of one batch; returns the revision they lead to. */
  apply(records: readonly FramedRecord[]): number
  /** Where the next segment goes on; what stands after that revision was never acknowledged. */
  readonly endRevision: number | undefined
  /** Up to where the segment is known to have been on disk, as of now. */
  syncedOffset(): Promise<number>
}

/** Batches of a journal are small and many. */
const windowBytes = 1024 ** 2

/**
 * Reads the batches of a segment in order. A place without a readable batch is the end, unless it
 * must have been readable once: then it is damage and throws `StoreDamaged`. It must have been, if
 * the marker says that it was synced, or if any later batch exists, as each is only written after
 * the one before it was synced.
 */
export async function readSegment(source: DataFile, how: SegmentReading): Promise<SegmentEnd> {
  const reader = new BatchReader(source.file, source.header, windowBytes)
  let offset = fileHeaderLength
  let lastBatch: number | undefined
  let revision = source.header.revision
  while (revision !== how.endRevision) {
    let found = await reader.batchAt(offset)
    if (found.type !== 'batch' || !found.intact) {
      const acknowledged =
        how.endRevision !== undefined ||
        offset < (await how.syncedOffset()) ||
        (await reader.hasBatchAfter(offset))
      if (!acknowledged) return { offset, lastBatch, torn: found.type !== 'nothing' }
      // The server may have been writing here at the first look; by now it has finished.
      reader.forgetWindow()
      found = await reader.batchAt(offset)
    }
    if (found.type !== 'batch') {
      throw structuralDamage(source.path, offset, 'an acknowledged commit cannot be read')
    }
    revision = how.apply(found.records)
    lastBatch = offset
    offset = found.end
  }
  return { offset, lastBatch, torn: false }
}
