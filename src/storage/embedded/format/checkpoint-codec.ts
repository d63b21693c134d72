import type { StoredRecord, StoreEvent } from '../../contract.ts'
import type { MirrorSnapshot } from '../../mirror/mirror.ts'
import { encodeBatch } from './batch-codec.ts'
import { type FileHeader, fileHeaderLength } from './file-header.ts'
import { framedLength, type RecordToWrite, recordKinds } from './record-codec.ts'

/** Small enough to encode without holding up the event loop. */
const batchBytes = 256 * 1024

/** What a checkpoint is made from. */
export interface CheckpointContent extends Pick<MirrorSnapshot, 'runs' | 'events'> {
  /** Whether the record's value is damaged; that is noted, so that it stays known. */
  isLost(record: StoredRecord): boolean
}

/** How much a checkpoint holds; stated at its end, so that a missing part is noticed. */
export interface CheckpointCounts {
  readonly records: number
  readonly events: number
}

/** The batches that follow the header of a checkpoint or backup, one at a time. */
export function* encodeCheckpoint(
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
export function decodeCounts(value: Buffer): CheckpointCounts {
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
