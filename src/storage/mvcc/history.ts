import type { StoredRecord, StoreEvent } from '../store.ts'
import { inRange, type KeyRange } from './record-index.ts'

/** How much of the past is kept. */
export interface HistoryLimits {
  readonly maxEvents: number
  /** Bytes of values that only history still holds. */
  readonly maxBytes: number
}

/** Enough for the slowest informer of a busy cluster to resume; some 100 MB at the very most. */
export const defaultHistoryLimits: HistoryLimits = { maxEvents: 50_000, maxBytes: 64 * 1024 ** 2 }

/** The latest changes in order, bounded in number and size. */
export class History {
  readonly #limits: HistoryLimits
  /** Slots before `#head` are dropped and empty. */
  #events: (StoreEvent | undefined)[] = []
  #head = 0
  #bytes = 0
  #floor: number

  /** `floor`: the revision whose state the first event will change. */
  constructor(floor: number, limits: HistoryLimits) {
    this.#floor = floor
    this.#limits = limits
  }

  /** The oldest revision that can be read or watched from: that of the last change not kept. */
  get floor(): number {
    return this.#floor
  }

  /** Bytes of values that only history still holds. */
  get bytes(): number {
    return this.#bytes
  }

  get count(): number {
    return this.#events.length - this.#head
  }

  append(event: StoreEvent): void {
    this.#events.push(event)
    this.#bytes += supersededBytes(event)
    this.#trim()
  }

  /** Forgets all changes. */
  clear(): void {
    while (this.count > 0) this.#dropOldestRevision()
  }

  /** Every kept change after `revision`, oldest first. */
  after(revision: number): readonly StoreEvent[] {
    let low = this.#head
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (revisionOf(this.#at(middle)) <= revision) low = middle + 1
      else high = middle
    }
    // All slots from `#head` on are filled.
    return this.#events.slice(low) as StoreEvent[]
  }

  /** What keys of `range` that changed later held at `revision`. */
  undo(revision: number, range: KeyRange): Map<string, StoredRecord | undefined> {
    const held = new Map<string, StoredRecord | undefined>()
    for (let i = this.#events.length - 1; i >= this.#head; i--) {
      const event = this.#at(i)
      if (revisionOf(event) <= revision) break
      if (inRange(range, event.record.key)) held.set(event.record.key, event.previous)
    }
    return held
  }

  #at(index: number): StoreEvent {
    return this.#events[index] as StoreEvent
  }

  #trim(): void {
    while (this.count > this.#limits.maxEvents || this.#bytes > this.#limits.maxBytes) {
      this.#dropOldestRevision()
    }
    if (this.#head > 1024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head)
      this.#head = 0
    }
  }

  /** One revision may have changed several keys; a part of it must not stay behind. */
  #dropOldestRevision(): void {
    this.#floor = revisionOf(this.#at(this.#head))
    while (this.#head < this.#events.length && revisionOf(this.#at(this.#head)) === this.#floor) {
      this.#bytes -= supersededBytes(this.#at(this.#head))
      this.#events[this.#head] = undefined
      this.#head++
    }
  }
}

const revisionOf = (event: StoreEvent): number => event.record.revision
const supersededBytes = (event: StoreEvent): number => event.previous?.value.length ?? 0
