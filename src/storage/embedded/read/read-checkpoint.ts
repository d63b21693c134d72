import type { StoredRecord, StoreEvent } from '../../contract.ts'
import { structuralDamage } from '../damage.ts'
import type { DataFile } from '../disk/data-file.ts'
import { decodeCounts } from '../format/checkpoint-codec.ts'
import { fileHeaderLength } from '../format/file-header.ts'
import { type FramedRecord, recordKinds } from '../format/record-codec.ts'
import { BatchReader } from './batch-reader.ts'
import { type LostValue, RecordMaker } from './lost-values.ts'
import { rebuildEvents } from './past-events.ts'

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
