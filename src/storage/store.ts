import { SallyportError } from '../core/index.ts'

/** One key and its value as of its last change. */
export interface StoredRecord {
  readonly key: string
  readonly value: Buffer
  /** The store's revision at which this value was written. */
  readonly revision: number
}

/**
 * A committed change. For a delete `record` has the last value and the revision of the deletion.
 * Where the replaced value was damaged and so lost, it is an empty buffer.
 */
export interface StoreEvent {
  readonly type: 'put' | 'delete'
  readonly record: StoredRecord
  /** What the key held before; absent when the change created it. */
  readonly previous?: StoredRecord
}

/** Which part of a key range is meant. */
export interface RangeOptions {
  /** Only keys that sort after this one. */
  readonly after?: string
  readonly limit?: number
  /** Read as of this revision instead of the latest. */
  readonly revision?: number
}

/** Records in key order, true at one revision. */
export interface Range {
  /**
   * The records in immutable runs. A run whose records have not changed is the very same array in
   * the next range, so that whatever was derived from it can be kept in a WeakMap.
   */
  readonly runs: readonly (readonly StoredRecord[])[]
  readonly revision: number
  /** How many further records the limit left out. */
  readonly remaining: number
}

/** Receives committed changes in order, one array per commit; must not block or throw. */
export type EventSink = (events: readonly StoreEvent[]) => void

/** An open watch. */
export interface Subscription {
  close(): void
}

/**
 * Keys with revisions, as etcd has them: one revision counter for the whole store, every
 * acknowledged write durable, every change visible in order. Reads are local and synchronous;
 * `freshen` makes them as new as any acknowledged write, of whatever replica.
 */
export interface Store {
  /** Makes following reads reflect all writes acknowledged before this call; returns that revision. */
  freshen(signal: AbortSignal): number | Promise<number>
  /** The latest revision that reads reflect. */
  readonly revision: number
  /** The oldest revision that `range` and `watch` still reach. */
  readonly oldestRevision: number
  /** Throws `RecordDamaged`, as `range` and `watch` do when they come across such a record. */
  get(key: string): StoredRecord | undefined
  /** Throws `RevisionCompacted` or `RevisionUnknown` when `options.revision` cannot be read. */
  range(prefix: string, options?: RangeOptions): Range
  /** Throws `KeyExists`. The store keeps `value`: it must not be changed afterwards. */
  create(key: string, value: Buffer): Promise<StoredRecord>
  /** Throws `RevisionMismatch` when the key is not at `expectedRevision` any more. */
  update(key: string, value: Buffer, expectedRevision: number): Promise<StoredRecord>
  /** Throws `RevisionMismatch`. Resolves to the revision of the deletion. */
  delete(key: string, expectedRevision: number): Promise<number>
  /**
   * Delivers every change after revision `after`: first what history has, synchronously, then each
   * commit before its writer is answered. Throws `RevisionCompacted` when history is too short and
   * `RevisionUnknown` when `after` has not happened yet.
   */
  watch(prefix: string, after: number, sink: EventSink): Subscription
  /**
   * Forgets the past: revisions before the current one are compacted, and values that were replaced
   * or deleted are in no file of the store any more.
   */
  compact(): Promise<void>
  /** Ends after all writes under way have been answered. */
  close(): Promise<void>
}

/** The key to create is there already. */
export class KeyExists extends SallyportError {
  readonly code = 'STORE_KEY_EXISTS'
}

/** The key is not at the expected revision; `current` is what it holds now, if anything. */
export class RevisionMismatch extends SallyportError {
  readonly code = 'STORE_REVISION_MISMATCH'
  readonly current: StoredRecord | undefined

  constructor(message: string, current: StoredRecord | undefined) {
    super(message)
    this.current = current
  }
}

/** The revision asked for lies before the history that is kept. */
export class RevisionCompacted extends SallyportError {
  readonly code = 'STORE_REVISION_COMPACTED'
}

/** The revision asked for has not happened yet. */
export class RevisionUnknown extends SallyportError {
  readonly code = 'STORE_REVISION_UNKNOWN'
}

/** An earlier value fails its checksum and is never served; a store with a damaged current one does not open. */
export class RecordDamaged extends SallyportError {
  readonly code = 'STORE_RECORD_DAMAGED'
  readonly key: string
  readonly revision: number

  constructor(message: string, record: Pick<StoredRecord, 'key' | 'revision'>) {
    super(message)
    this.key = record.key
    this.revision = record.revision
  }
}

/** The store as a whole cannot be read: its structure is damaged or of an unknown format. */
export class StoreDamaged extends SallyportError {
  readonly code: string = 'STORE_DAMAGED'
  readonly file: string
  /** Where in the file, in bytes. */
  readonly offset: number
  /** What is wrong there; the message says it too, with what to do about it. */
  readonly what: string

  constructor(
    message: string,
    damage: { readonly file: string; readonly offset: number; readonly what?: string },
  ) {
    super(message)
    this.file = damage.file
    this.offset = damage.offset
    this.what = damage.what ?? message
  }
}

/** Acknowledged commits may be missing at the end of the journal; the operator decides. */
export class StoreEndUnknown extends StoreDamaged {
  override readonly code = 'STORE_END_UNKNOWN'
}

/** A write could not be made durable (disk full, read-only, closed); nothing of it is visible. */
export class StoreWriteFailed extends SallyportError {
  readonly code = 'STORE_WRITE_FAILED'
}

/**
 * The value in memory of its own if it is a small part of something larger. Small buffers share
 * slabs with whatever else was allocated then, and one live value would keep a whole slab.
 */
export function leanValue(value: Buffer): Buffer {
  if (value.length * 2 > value.buffer.byteLength) return value
  const copy = Buffer.allocUnsafeSlow(value.length)
  value.copy(copy)
  return copy
}
