import {
  type EventSink,
  type Range,
  type RangeOptions,
  RecordDamaged,
  RevisionCompacted,
  RevisionUnknown,
  type StoredRecord,
  type StoreEvent,
  type Subscription,
} from '../store.ts'
import { History, type HistoryLimits } from './history.ts'
import { prefixRange, RecordIndex, type Run, takeRecords, withChanges } from './record-index.ts'
import { Subscriptions } from './watchers.ts'

/** The revision of an empty store. As in etcd it is 1: Kubernetes gives 0 a meaning of its own. */
export const firstRevision = 1

const keyAndFrameBytes = 100

/** What a mirror starts from. */
export interface MirrorStart {
  /** In key order. */
  readonly records: readonly StoredRecord[]
  /** What led to the records, oldest first; all after revision `floor`. */
  readonly events: readonly StoreEvent[]
  readonly floor: number
  readonly revision: number
  readonly limits: HistoryLimits
  readonly onSinkFailure: (error: unknown) => void
}

/** The whole state and its past at one moment; stays true while the mirror goes on. */
export interface MirrorSnapshot {
  readonly runs: readonly Run[]
  readonly events: readonly StoreEvent[]
  readonly floor: number
  readonly revision: number
}

/**
 * The whole state in memory with its recent past: all reads and watches of a store, whatever makes
 * its commits durable. Whoever owns it feeds it every commit in order.
 */
export class Mirror {
  readonly #index = new RecordIndex()
  readonly #history: History
  readonly #subscriptions: Subscriptions
  /** Records whose value is lost, and where that was found; their `value` here is empty. */
  readonly #damaged = new Map<StoredRecord, string>()
  #revision: number
  #liveBytes = 0

  constructor(start: MirrorStart) {
    this.#index.load(start.records)
    for (const record of start.records) this.#liveBytes += record.value.length
    this.#revision = start.revision
    this.#history = new History(start.floor, start.limits)
    for (const event of start.events) this.#history.append(event)
    this.#subscriptions = new Subscriptions(start.onSinkFailure)
  }

  get revision(): number {
    return this.#revision
  }

  get oldestRevision(): number {
    return this.#history.floor
  }

  /** How many keys there are. */
  get size(): number {
    return this.#index.size
  }

  /** About how many bytes it takes to write down all that is held, current and past. */
  get heldBytes(): number {
    const count = this.#index.size + this.#history.count
    return this.#liveBytes + this.#history.bytes + count * keyAndFrameBytes
  }

  get(key: string): StoredRecord | undefined {
    const record = this.#index.get(key)
    if (record && this.#damaged.size > 0) this.#refuseDamaged(record)
    return record
  }

  /** What `key` holds even if its value is damaged: for deciding writes, not for serving. */
  peek(key: string): StoredRecord | undefined {
    return this.#index.get(key)
  }

  /** The value of `record` is lost; `where` says where that was found. */
  markDamaged(record: StoredRecord, where: string): void {
    this.#damaged.set(record, where)
  }

  /** The error to throw instead of serving `record`, if its value is lost. */
  damageOf(record: StoredRecord): RecordDamaged | undefined {
    const where = this.#damaged.get(record)
    if (where === undefined) return undefined
    return new RecordDamaged(`the value of ${record.key} is damaged (${where})`, record)
  }

  snapshot(): MirrorSnapshot {
    return {
      runs: this.#index.runs('', undefined),
      events: this.#history.after(this.#history.floor),
      floor: this.#history.floor,
      revision: this.#revision,
    }
  }

  range(prefix: string, options: RangeOptions = {}): Range {
    const revision = options.revision ?? this.#revision
    this.#requireReachable(revision)
    const keys = prefixRange(prefix, options.after)
    const now = this.#index.runs(keys.from, keys.to)
    const then =
      revision < this.#revision ? withChanges(now, this.#history.undo(revision, keys)) : now
    const page = takeRecords(then, options.limit)
    if (this.#damaged.size > 0) for (const run of page.runs) run.forEach(this.#refuseDamaged)
    return { ...page, revision }
  }

  watch(prefix: string, after: number, sink: EventSink): Subscription {
    this.#requireReachable(after)
    const replay = this.#history.after(after).filter((event) => event.record.key.startsWith(prefix))
    if (this.#damaged.size > 0) {
      // A deletion carries the value that it removed: its `previous` tells.
      for (const { record, previous } of replay) {
        this.#refuseDamaged(record)
        if (previous) this.#refuseDamaged(previous)
      }
    }
    return this.#subscriptions.add(prefix, sink, replay)
  }

  /** Forgets the past; the present stays as it is. */
  compact(): void {
    this.#history.clear()
  }

  /** Makes a commit visible to reads, then tells the watchers. */
  commit(events: readonly StoreEvent[]): void {
    for (const event of events) this.#apply(event)
    this.#subscriptions.dispatch(events)
  }

  #apply(event: StoreEvent): void {
    const { record, previous } = event
    if (event.type === 'put') {
      this.#index.set(record)
      this.#liveBytes += record.value.length
    } else this.#index.remove(record.key)
    if (previous) this.#liveBytes -= previous.value.length
    this.#revision = record.revision
    this.#history.append(event)
  }

  #requireReachable(revision: number): void {
    if (revision < this.oldestRevision) {
      throw new RevisionCompacted(
        `revision ${revision} is no longer kept; the oldest is ${this.oldestRevision}`,
      )
    }
    if (revision > this.#revision) {
      throw new RevisionUnknown(
        `revision ${revision} has not happened yet; the latest is ${this.#revision}`,
      )
    }
  }

  readonly #refuseDamaged = (record: StoredRecord): void => {
    const damage = this.damageOf(record)
    if (damage) throw damage
  }
}
