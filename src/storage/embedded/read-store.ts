import { join } from 'node:path'
import type { HistoryLimits } from '../mvcc/history.ts'
import { firstRevision, Mirror } from '../mvcc/mvcc.ts'
import type { StoreEvent } from '../store.ts'
import { readCheckpoint } from './checkpoint.ts'
import { type LostValue, lostEnd, structuralDamage, unknownEnd } from './damage.ts'
import { checkpointName, manifestName, segmentName } from './file-format.ts'
import { type DataFile, type FileOps, openDataFile } from './file-system.ts'
import { type Manifest, readManifest } from './manifest.ts'
import { type FramedRecord, recordKinds } from './record-codec.ts'
import { RecordMaker, readSegment } from './segment-reader.ts'
import { type JournalEnd, judgeEnd, readMarker } from './synced-marker.ts'

/** The files of a store, open for reading. */
interface StoreFiles {
  readonly manifest: Manifest
  readonly checkpoint: DataFile | undefined
  /** In order; the last one is or was written to. */
  readonly segments: readonly [DataFile, ...DataFile[]]
  close(): Promise<void>
}

/**
 * Opens all files of a store. A server may be replacing them meanwhile: once open they stay
 * readable, and if one is gone because the manifest has changed, the new one is followed.
 */
async function openStoreFiles(files: FileOps, directory: string): Promise<StoreFiles> {
  for (;;) {
    const manifest = await readManifest(files, directory)
    const opened: DataFile[] = []
    try {
      return await openAll(files, directory, manifest, opened)
    } catch (error) {
      await closeAll(opened)
      const now = await readManifest(files, directory)
      if (JSON.stringify(now) === JSON.stringify(manifest)) throw error
    }
  }
}

async function openAll(
  files: FileOps,
  directory: string,
  manifest: Manifest,
  opened: DataFile[],
): Promise<StoreFiles> {
  const openNumbered = async (kind: 'segment' | 'checkpoint', sequence: number) => {
    const name = kind === 'segment' ? segmentName(sequence) : checkpointName(sequence)
    const source = await openDataFile(files, join(directory, name), kind)
    opened.push(source)
    if (source.header.sequence === sequence) return source
    throw structuralDamage(source.path, 0, `the file says that it is ${kind} ${sequence}`)
  }
  const checkpoint =
    manifest.checkpoint === undefined
      ? undefined
      : await openNumbered('checkpoint', manifest.checkpoint)
  const segments: DataFile[] = []
  for (const sequence of manifest.segments) segments.push(await openNumbered('segment', sequence))
  const [first, ...rest] = segments
  if (first === undefined) {
    throw structuralDamage(join(directory, manifestName), 0, 'the manifest names no segment')
  }
  return { manifest, checkpoint, segments: [first, ...rest], close: () => closeAll(opened) }
}

async function closeAll(opened: readonly DataFile[]): Promise<void> {
  for (const { file } of opened) await file.close()
}

/** How a store is read. */
export interface StoreReading {
  readonly files: FileOps
  readonly directory: string
  readonly limits: HistoryLimits
  readonly onSinkFailure: (error: unknown) => void
  /** Told of every value that fails its checksum, also of those that nothing holds any more. */
  readonly onLostValue: (lost: LostValue) => void
  /** Continues at an end of the journal that is unproven or unreadable; without it that throws. */
  readonly onUnknownEnd?: (end: UnknownEnd) => void
}

/** An end of the journal after which acknowledged commits are or may be missing. */
export interface UnknownEnd extends JournalEnd {
  readonly path: string
  /** The last revision that can be read. */
  readonly revision: number
  readonly why: string
}

/** All that the files of a store say. */
export interface StoreContent {
  readonly mirror: Mirror
  readonly manifest: Manifest
  /** The segment that is written to. */
  readonly active: Omit<DataFile, 'file'> & JournalEnd
  /** Up to where the active segment is known to have been synced. */
  readonly syncedOffset: number
  readonly journalBytes: number
}

/** Whether the lost value is that of a current object, not an earlier one. */
export const isCurrentValue = ({ record }: LostValue, mirror: Mirror): boolean =>
  mirror.peek(record.key) === record

/** Reads a whole store and changes nothing; a server may be writing to it. */
export async function readStore(how: StoreReading): Promise<StoreContent> {
  // Read before the manifest: a marker that is ahead of it then is not a server at work.
  const marker = await readMarker(how.files, how.directory)
  const synced = marker.state === 'valid' ? marker.place : undefined
  const store = await openStoreFiles(how.files, how.directory)
  try {
    const active = store.segments.at(-1) ?? store.segments[0]
    if (synced && synced.segment.sequence > active.header.sequence) {
      const path = join(how.directory, manifestName)
      throw structuralDamage(path, 0, 'the manifest is older than the journal')
    }
    const mirror = await startMirror(store, how)
    const { end, journalBytes } = await replaySegments(store, mirror, how)
    return {
      mirror,
      manifest: store.manifest,
      active: { path: active.path, header: active.header, ...end },
      syncedOffset: synced?.segment.sequence === active.header.sequence ? synced.offset : 0,
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
): Promise<{ readonly end: JournalEnd; readonly journalBytes: number }> {
  let end: JournalEnd = { offset: 0, lastBatch: undefined, tail: 'zeros' }
  let journalBytes = 0
  for (const [i, segment] of store.segments.entries()) {
    if (segment.header.revision !== mirror.revision) {
      throw structuralDamage(segment.path, 0, `revisions after ${mirror.revision} are missing`)
    }
    const { path } = segment
    end = await readSegment(segment, {
      apply: (records) => replay(records, segment.path, mirror, how),
      endRevision: store.segments[i + 1]?.header.revision,
      judge: async (found) => {
        const marker = await readMarker(how.files, how.directory)
        const verdict = judgeEnd(marker, segment.header, found)
        if (typeof verdict === 'string') return verdict
        const unknown = { ...found, path, revision: mirror.revision, why: verdict.unknown }
        if (how.onUnknownEnd === undefined) throw unknownEnd(unknown, how.directory)
        how.onUnknownEnd(unknown)
        return 'end'
      },
      giveUp: (found) => {
        const why = 'an acknowledged commit at its end cannot be read'
        const lost = { ...found, path, revision: mirror.revision, why }
        if (how.onUnknownEnd === undefined) throw lostEnd(lost, how.directory)
        how.onUnknownEnd(lost)
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
