import { join } from 'node:path'
import type { Logger } from '../../../core/index.ts'
import type { StoreEvent } from '../../contract.ts'
import { writeFailure } from '../damage.ts'
import type { FileOps } from '../disk/file-ops.ts'
import type { SyncedMarker } from '../disk/synced-marker.ts'
import { removeIfThere } from '../disk/whole-file.ts'
import { newFileHeader } from '../format/file-header.ts'
import { segmentName } from '../format/names.ts'
import { type RecordToWrite, recordKinds } from '../format/record-codec.ts'
import type { ManifestKeeper } from './manifest-keeper.ts'
import { SegmentWriter } from './segment-writer.ts'

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
    } catch (error) {
      this.#failure = error
      this.#parts.log.error({ err: error }, 'a commit could not be written')
      throw writeFailure(this.#parts.directory, error, 'nothing was changed')
    }
    this.#mark()
  }

  /** Goes on in a new segment, `revision` being the last one that counts in those before. */
  async rotate(revision: number): Promise<void> {
    const { files, directory, manifest } = this.#parts
    const old = this.#segment
    const sequence = manifest.nextSequence()
    const header = newFileHeader({ kind: 'segment', sequence, revision, floor: revision })
    const next = await SegmentWriter.create(files, directory, header).catch(async (error) => {
      await this.#discard(sequence)
      throw error
    })
    try {
      await manifest.addSegment(sequence, old.isEmpty ? old.sequence : undefined)
    } catch (error) {
      // The manifest on disk may name the new segment or not: neither may be written to.
      this.#failure = error
      await next.close()
      throw error
    }
    this.#segment = next
    this.#failure = undefined
    this.#mark()
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

  #mark(): void {
    try {
      this.#parts.marker.set({ sequence: this.#segment.sequence, offset: this.#segment.end })
    } catch (err) {
      this.#parts.log.warn({ err }, 'cannot note how far the journal is on disk')
    }
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

const nothing = Buffer.alloc(0)
