import type { StoredRecord } from '../../contract.ts'
import type { FramedRecord } from '../format/record-codec.ts'

/** A record whose value fails its checksum or was lost before. */
export interface LostValue {
  readonly record: StoredRecord
  readonly path: string
  readonly offset: number
}

/** Makes records of what was read from one file and tells of those whose value is lost. */
export class RecordMaker {
  readonly path: string
  readonly #onLost: (lost: LostValue) => void

  constructor(path: string, onLost: (lost: LostValue) => void) {
    this.path = path
    this.#onLost = onLost
  }

  /** The record with the value that `framed` carries, or with none if that is damaged. */
  make(framed: FramedRecord, revision: number): StoredRecord {
    const { key, value, offset } = framed
    if (framed.intact && !framed.lost) return { key, value, revision }
    // The damaged bytes go no further: nothing that reads the record later can serve them.
    const record = { key, value: Buffer.alloc(0), revision }
    this.#onLost({ record, path: this.path, offset })
    return record
  }
}
