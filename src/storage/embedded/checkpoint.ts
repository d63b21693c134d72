import type { MirrorSnapshot } from '../mvcc/mvcc.ts'
import { positionIn } from '../mvcc/record-index.ts'
import type { StoredRecord, StoreEvent } from '../store.ts'
import { type LostValue, structuralDamage } from './damage.ts'
import { type FileHeader, fileHeaderLength } from './file-format.ts'
import { createDataFile, type DataFile, type FileOps, removeIfThere } from './file-system.ts'
import {
  encodeBatch,
  type FramedRecord,
  framedLength,
  type RecordToWrite,
  recordKinds,
} from './record-codec.ts'
import { BatchReader, RecordMaker } from './segment-reader.ts'

/** Small enough to encode without holding up the event loop. */
const batchBytes = 256 * 1024

/** What a checkpoint is made from. */
export interface CheckpointContent extends Pick<MirrorSnapshot, 'runs' | 'events'> {
  /** Whether the record's value is damaged; that is noted, so that it stays known. */
  isLost(record: StoredRecord): boolean
}

/** How much a checkpoint holds; stated at its end, so that a missing part is noticed. */
interface CheckpointCounts {
  readonly records: number
  readonly events: number
}

/** The batches that follow the header of a checkpoint or backup, one at a time. */
function* encodeCheckpoint(
  content: CheckpointContent,
  header: FileHeader,
): Generator<Buffer, void> {
  let offset = fileHeaderLength
  let batch: RecordToWrite[] = []
  let bytes = 0
  for (const record of recordsOf(content)) {
    batch.push(record)
    bytes += framedLength(record)
    if (bytes < batchBytes && record.kind !== recordKinds.end) continue
    const encoded = encodeBatch(batch, header, offset)
    offset += encoded.length
    batch = []
    bytes = 0
    yield encoded
  }
}

/** Reads the value of the record that ends a checkpoint. */
function decodeCounts(value: Buffer): CheckpointCounts {
  return { records: value.readDoubleLE(0), events: value.readDoubleLE(8) }
}

function encodeCounts(counts: CheckpointCounts): Buffer {
  const value = Buffer.alloc(16)
  value.writeDoubleLE(counts.records, 0)
  value.writeDoubleLE(counts.events, 8)
  return value
}

/**
 * First what is live, then the past as what each change replaced: with the live records that gives
 * every value of the past back, and none is written twice.
 */
function* recordsOf(content: CheckpointContent): Generator<RecordToWrite, void> {
  let records = 0
  for (const run of content.runs) {
    records += run.length
    for (const record of run) {
      const { key, value, revision } = record
      const lost = content.isLost(record)
      yield { kind: recordKinds.live, key, revision, previousRevision: 0, value, lost }
    }
  }
  for (const event of content.events) yield pastRecord(event, content)
  yield {
    kind: recordKinds.end,
    key: '',
    revision: 0,
    previousRevision: 0,
    value: encodeCounts({ records, events: content.events.length }),
    lost: false,
  }
}

function pastRecord(event: StoreEvent, content: CheckpointContent): RecordToWrite {
  const { previous } = event
  return {
    kind: event.type === 'put' ? recordKinds.pastPut : recordKinds.pastDelete,
    key: event.record.key,
    revision: event.record.revision,
    previousRevision: previous?.revision ?? 0,
    value: previous?.value ?? Buffer.alloc(0),
    lost: previous !== undefined && content.isLost(previous),
  }
}

/**
 * Rebuilds the events of a checkpoint. Each one only carries what it replaced, so they are walked
 * from the newest to the oldest, taking the live records back in time.
 */
function rebuildEvents(
  past: readonly FramedRecord[],
  live: readonly StoredRecord[],
  maker: RecordMaker,
): StoreEvent[] {
  const earlier = new Map<string, StoredRecord | undefined>()
  const heldAfter = (key: string): StoredRecord | undefined => {
    if (earlier.has(key)) return earlier.get(key)
    const record = live[positionIn(live, key)]
    return record?.key === key ? record : undefined
  }
  const events: StoreEvent[] = []
  for (const framed of past.toReversed()) {
    const { key, previousRevision } = framed
    const previous = previousRevision > 0 ? maker.make(framed, previousRevision) : undefined
    const event = eventOf(framed, heldAfter(key), previous)
    if (event === undefined) {
      throw structuralDamage(maker.path, framed.offset, `the history of ${key} has a gap`)
    }
    earlier.set(key, previous)
    events.push(event)
  }
  return events.reverse()
}

/** `undefined` when the event does not lead to what the key held after it. */
function eventOf(
  framed: FramedRecord,
  after: StoredRecord | undefined,
  previous: StoredRecord | undefined,
): StoreEvent | undefined {
  const { key, revision } = framed
  if (framed.kind === recordKinds.pastPut) {
    if (after?.revision !== revision) return undefined
    return previous ? { type: 'put', record: after, previous } : { type: 'put', record: after }
  }
  if (after || !previous) return undefined
  return { type: 'delete', record: { key, value: previous.value, revision }, previous }
}

/** What a checkpoint or backup says. */
export interface CheckpointState {
  /** In key order. */
  readonly records: readonly StoredRecord[]
  /** Oldest first. */
  readonly events: readonly StoreEvent[]
  readonly lost: readonly LostValue[]
}

/** Reads a checkpoint or backup to its end. Values stay parts of the buffers they were read into. */
export async function readCheckpoint(source: DataFile): Promise<CheckpointState> {
  const content = new CheckpointReading(source.path)
  const reader = new BatchReader(source.file, source.header, 0)
  let offset = fileHeaderLength
  while (!content.complete) {
    const found = await reader.batchAt(offset)
    if (found.type !== 'batch') {
      throw structuralDamage(source.path, offset, 'a batch of records cannot be read')
    }
    for (const framed of found.records) content.add(framed)
    offset = found.end
  }
  return content.state()
}

class CheckpointReading {
  readonly #maker: RecordMaker
  readonly #lost: LostValue[] = []
  readonly #records: StoredRecord[] = []
  readonly #past: FramedRecord[] = []
  complete = false

  constructor(path: string) {
    this.#maker = new RecordMaker(path, (lost) => this.#lost.push(lost))
  }

  add(framed: FramedRecord): void {
    if (framed.kind === recordKinds.live) this.#addLive(framed)
    else if (framed.kind === recordKinds.end) this.#end(framed)
    else this.#past.push(framed)
  }

  state(): CheckpointState {
    const events = rebuildEvents(this.#past, this.#records, this.#maker)
    return { records: this.#records, events, lost: this.#lost }
  }

  #addLive(framed: FramedRecord): void {
    const last = this.#records.at(-1)
    if (last && framed.key <= last.key) {
      throw structuralDamage(this.#maker.path, framed.offset, 'records are out of order')
    }
    this.#records.push(this.#maker.make(framed, framed.revision))
  }

  #end(framed: FramedRecord): void {
    const counts = framed.intact ? decodeCounts(framed.value) : undefined
    if (counts?.records !== this.#records.length || counts.events !== this.#past.length) {
      throw structuralDamage(this.#maker.path, framed.offset, 'the number of records is wrong')
    }
    this.complete = true
  }
}

/** So that the last sync does not make the commits of that moment wait for all of the file. */
const syncEveryBytes = 8 * 1024 ** 2

/**
 * Writes a checkpoint or backup to a new file, in slices between which other work goes on. Its
 * content is on disk then, its name is not. A file that could not be finished is removed.
 */
export async function writeCheckpoint(
  files: FileOps,
  target: { readonly path: string; readonly header: FileHeader },
  content: CheckpointContent,
  signal?: AbortSignal,
): Promise<void> {
  const { file } = await createDataFile(files, target.path, target.header)
  try {
    let offset = fileHeaderLength
    let syncedUpTo = 0
    for (const batch of encodeCheckpoint(content, target.header)) {
      signal?.throwIfAborted()
      await file.write([batch], offset)
      offset += batch.length
      if (offset - syncedUpTo < syncEveryBytes) continue
      await file.sync()
      syncedUpTo = offset
    }
    await file.sync()
  } catch (error) {
    await removeIfThere(files, target.path).catch(() => {}) // the first failure is what counts
    throw error
  } finally {
    await file.close()
  }
}
