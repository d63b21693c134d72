import { join } from 'node:path'
import type { Logger } from '../../core/index.ts'
import type { StoreEvent } from '../store.ts'
import { writeFailure } from './damage.ts'
import { newFileHeader, segmentName } from './file-format.ts'
import { type FileOps, removeIfThere } from './file-system.ts'
import type { ManifestKeeper } from './manifest.ts'
import type { StoreContent } from './read-store.ts'
import { type RecordToWrite, recordKinds } from './record-codec.ts'
import { SegmentWriter } from './segment-writer.ts'
import type { SyncedMarker, SyncedPlace } from './synced-marker.ts'

/** What a journal works with. */
export interface JournalParts {
  readonly files: FileOps
  readonly directory: string
  readonly manifest: ManifestKeeper
  readonly marker: SyncedMarker
  readonly log: Logger
}

/**
 * Makes commits durable, in one segment at a time. Calls must not overlap.
 *
 * After a failed write nobody can say what is on disk: systems forget pages that could not be
 * written, and a later sync succeeds without them. So a segment that failed once is never written
 * to again. The next commit starts a new segment whose first revision says that whatever the
 * failed commit left behind does not count. Until that works, writes are refused and reads go on.
 */
export class Journal {
  readonly #parts: JournalParts
  #segment: SegmentWriter
  /** Bytes of the segments before the current one. */
  #earlierBytes: number
  #failure: unknown

  constructor(segment: SegmentWriter, earlierBytes: number, parts: JournalParts) {
    this.#parts = parts
    this.#segment = segment
    this.#earlierBytes = earlierBytes
  }

  /** Bytes written since the last checkpoint. */
  get bytes(): number {
    return this.#earlierBytes + this.#segment.end
  }

  /** Bytes of all segments before the current one. */
  get earlierBytes(): number {
    return this.#earlierBytes
  }

  /** The current segment's number. */
  get sequence(): number {
    return this.#segment.sequence
  }

  /** Why the current segment cannot be written to any more. */
  get failure(): unknown {
    return this.#failure
  }

  /** Resolves when the events are on disk; throws `StoreWriteFailed`, and then none of them counts. */
  async append(events: readonly StoreEvent[]): Promise<void> {
    try {
      await this.#segment.append(events.map(recordOf))
      // Without the marker nothing would prove after a crash that this commit was acknowledged.
      this.#parts.marker.set(placeIn(this.#segment))
    } catch (error) {
      this.#failure = error
      this.#parts.log.error({ err: error }, 'a commit could not be written')
      throw writeFailure(this.#parts.directory, error, 'nothing was changed')
    }
  }

  /** Goes on in a new segment, `revision` being the last one that counts in those before. */
  async rotate(revision: number): Promise<void> {
    const { files, directory, manifest, marker } = this.#parts
    const old = this.#segment
    const sequence = manifest.nextSequence()
    const header = newFileHeader({ kind: 'segment', sequence, revision, floor: revision })
    const next = await SegmentWriter.create(files, directory, header).catch(async (error) => {
      await this.#discard(sequence)
      throw error
    })
    try {
      await marker.announce(sequence)
      await manifest.addSegment(sequence, old.isEmpty ? old.sequence : undefined)
      marker.set(placeIn(next))
    } catch (error) {
      // The manifest on disk may name the new segment or not: neither may be written to.
      this.#failure = error
      await next.close()
      throw error
    }
    this.#segment = next
    this.#failure = undefined
    await old.close().catch((err: unknown) => {
      this.#parts.log.warn({ err }, 'cannot close a segment that is full')
    })
    if (old.isEmpty) await this.#discard(old.sequence)
    else this.#earlierBytes += old.end
  }

  /** A checkpoint has taken the place of this many bytes. */
  forget(bytes: number): void {
    this.#earlierBytes -= bytes
  }

  async close(): Promise<void> {
    await this.#segment.close()
    await this.#parts.marker.close()
  }

  async #discard(sequence: number): Promise<void> {
    const { files, directory, log } = this.#parts
    await removeIfThere(files, join(directory, segmentName(sequence))).catch((err: unknown) => {
      log.warn({ err }, 'cannot remove a segment that is not needed')
    })
  }
}

function recordOf(event: StoreEvent): RecordToWrite {
  const { key, revision, value } = event.record
  const put = event.type === 'put'
  return {
    kind: put ? recordKinds.put : recordKinds.delete,
    key,
    revision,
    previousRevision: event.previous?.revision ?? 0,
    value: put ? value : nothing,
    lost: false,
  }
}

/** What the marker says while commits go to this segment. */
export const placeIn = ({ header, end }: SegmentWriter): SyncedPlace => ({
  segment: header,
  offset: end,
  lastSequence: header.sequence,
})

const nothing = Buffer.alloc(0)

/**
 * Puts the end of the journal in order before it is served or written to: what a crash tore off is
 * cut away, and a last commit that is not known to be on disk is put there.
 */
export async function repairTail(
  files: FileOps,
  { active, syncedOffset }: StoreContent,
  log: Logger,
): Promise<void> {
  const unproven = active.lastBatch !== undefined && active.offset > syncedOffset
  const torn = active.tail !== 'zeros'
  if (!torn && !unproven) return
  const file = await files.open(active.path, 'edit')
  try {
    if (torn) {
      const removed = (await file.size()) - active.offset
      log.warn(
        { file: active.path, offset: active.offset, bytes: removed },
        'the journal ends in a commit that was cut short and never acknowledged; it is removed',
      )
      await file.truncate(active.offset)
    }
    if (unproven && active.lastBatch !== undefined) {
      // Read and written again: after a failed sync a system takes its pages for written, and
      // another sync alone would do nothing.
      const batch = Buffer.alloc(active.offset - active.lastBatch)
      await file.read(batch, active.lastBatch)
      await file.write([batch], active.lastBatch)
    }
    await file.sync()
  } finally {
    await file.close()
  }
}
