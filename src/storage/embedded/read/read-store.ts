import { join } from 'node:path'
import type { StoreEvent } from '../../contract.ts'
import type { HistoryLimits } from '../../mirror/history.ts'
import { firstRevision, Mirror } from '../../mirror/mirror.ts'
import { structuralDamage } from '../damage.ts'
import type { DataFile } from '../disk/data-file.ts'
import type { FileOps } from '../disk/file-ops.ts'
import type { Manifest } from '../disk/manifest.ts'
import { readSyncedPlace } from '../disk/synced-marker.ts'
import { manifestName } from '../format/names.ts'
import { type FramedRecord, recordKinds } from '../format/record-codec.ts'
import { type LostValue, RecordMaker } from './lost-values.ts'
import { readCheckpoint } from './read-checkpoint.ts'
import { readSegment, type SegmentEnd } from './read-segment.ts'
import { openStoreFiles, type StoreFiles } from './store-files.ts'

/** How a store is read. */
export interface StoreReading {
  readonly files: FileOps
  readonly directory: string
  readonly limits: HistoryLimits
  readonly onSinkFailure: (error: unknown) => void
  /** Told of every value that fails its checksum, also of those that nothing holds any more. */
  readonly onLostValue: (lost: LostValue) => void
}

/** All that the files of a store say. */
export interface StoreContent {
  readonly mirror: Mirror
  readonly manifest: Manifest
  /** The segment that is written to. */
  readonly active: Omit<DataFile, 'file'> & SegmentEnd
  /** Up to where the active segment is known to have been synced. */
  readonly syncedOffset: number
  readonly journalBytes: number
}

/** Reads a whole store and changes nothing; a server may be writing to it. */
export async function readStore(how: StoreReading): Promise<StoreContent> {
  // Read before the manifest: a marker that is ahead of it then is not a server at work.
  const synced = await readSyncedPlace(how.files, how.directory)
  const store = await openStoreFiles(how.files, how.directory)
  try {
    const active = store.segments.at(-1) ?? store.segments[0]
    if (synced && synced.sequence > active.header.sequence) {
      const path = join(how.directory, manifestName)
      throw structuralDamage(path, 0, 'the manifest is older than the journal')
    }
    const mirror = await startMirror(store, how)
    const { end, journalBytes } = await replaySegments(store, mirror, how)
    return {
      mirror,
      manifest: store.manifest,
      active: { path: active.path, header: active.header, ...end },
      syncedOffset: synced?.sequence === active.header.sequence ? synced.offset : 0,
      journalBytes,
    }
  } finally {
    await store.close()
  }
}

async function startMirror(store: StoreFiles, how: StoreReading): Promise<Mirror> {
  const { limits, onSinkFailure } = how
  if (store.checkpoint === undefined) {
    const start = { records: [], events: [], revision: firstRevision, floor: firstRevision }
    return new Mirror({ ...start, limits, onSinkFailure })
  }
  const { revision, floor } = store.checkpoint.header
  const { records, events, lost } = await readCheckpoint(store.checkpoint)
  const mirror = new Mirror({ records, events, revision, floor, limits, onSinkFailure })
  for (const value of lost) note(value, mirror, how)
  return mirror
}

async function replaySegments(
  store: StoreFiles,
  mirror: Mirror,
  how: StoreReading,
): Promise<{ readonly end: SegmentEnd; readonly journalBytes: number }> {
  let end: SegmentEnd = { offset: 0, lastBatch: undefined, torn: false }
  let journalBytes = 0
  for (const [i, segment] of store.segments.entries()) {
    if (segment.header.revision !== mirror.revision) {
      throw structuralDamage(segment.path, 0, `revisions after ${mirror.revision} are missing`)
    }
    end = await readSegment(segment, {
      apply: (records) => replay(records, segment.path, mirror, how),
      endRevision: store.segments[i + 1]?.header.revision,
      syncedOffset: async () => {
        const now = await readSyncedPlace(how.files, how.directory)
        return now?.sequence === segment.header.sequence ? now.offset : 0
      },
    })
    journalBytes += end.offset
  }
  return { end, journalBytes }
}

function replay(
  records: readonly FramedRecord[],
  path: string,
  mirror: Mirror,
  how: StoreReading,
): number {
  const maker = new RecordMaker(path, (lost) => note(lost, mirror, how))
  for (const framed of records) {
    const event = eventOf(framed, mirror, maker)
    if (event === undefined || framed.revision !== mirror.revision + 1) {
      throw structuralDamage(path, framed.offset, `the change of ${framed.key} does not follow`)
    }
    mirror.commit([event])
  }
  return mirror.revision
}

/** `undefined` when the record does not follow from what the key holds. */
function eventOf(framed: FramedRecord, mirror: Mirror, maker: RecordMaker): StoreEvent | undefined {
  const { key, revision, previousRevision } = framed
  const previous = mirror.peek(key)
  if ((previous?.revision ?? 0) !== previousRevision) return undefined
  if (framed.kind === recordKinds.delete && previous) {
    return { type: 'delete', record: { key, value: previous.value, revision }, previous }
  }
  if (framed.kind !== recordKinds.put) return undefined
  const record = maker.make(framed, revision)
  return previous ? { type: 'put', record, previous } : { type: 'put', record }
}

function note(lost: LostValue, mirror: Mirror, how: StoreReading): void {
  mirror.markDamaged(lost.record, `${lost.path}, byte ${lost.offset}`)
  how.onLostValue(lost)
}
