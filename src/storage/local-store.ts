import type {
  EventSink,
  Range,
  RangeOptions,
  Store,
  StoredRecord,
  Subscription,
} from './contract.ts'
import type { Mirror } from './mirror.ts'
import { type Persist, WriteQueue } from './write-queue.ts'

/** A store whose only writer is this process: the mirror is always up to date. */
export class LocalStore implements Store {
  readonly #mirror: Mirror
  readonly #queue: WriteQueue

  constructor(mirror: Mirror, persist: Persist) {
    this.#mirror = mirror
    this.#queue = new WriteQueue(mirror, persist)
  }

  get revision(): number {
    return this.#mirror.revision
  }

  get oldestRevision(): number {
    return this.#mirror.oldestRevision
  }

  freshen(): number {
    return this.#mirror.revision
  }

  get(key: string): StoredRecord | undefined {
    return this.#mirror.get(key)
  }

  range(prefix: string, options?: RangeOptions): Range {
    return this.#mirror.range(prefix, options)
  }

  create(key: string, value: Buffer): Promise<StoredRecord> {
    return this.#queue.submit({ type: 'create', key, value })
  }

  update(key: string, value: Buffer, expectedRevision: number): Promise<StoredRecord> {
    return this.#queue.submit({ type: 'update', key, value, expectedRevision })
  }

  async delete(key: string, expectedRevision: number): Promise<number> {
    const { revision } = await this.#queue.submit({ type: 'delete', key, expectedRevision })
    return revision
  }

  watch(prefix: string, after: number, sink: EventSink): Subscription {
    return this.#mirror.watch(prefix, after, sink)
  }

  close(): Promise<void> {
    return this.#queue.close()
  }
}
