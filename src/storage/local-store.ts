import { type Logger, silentLogger } from '../core/index.ts'
import { defaultHistoryLimits, type HistoryLimits } from './mvcc/history.ts'
import { firstRevision, Mirror } from './mvcc/mvcc.ts'
import {
  type EventSink,
  leanValue,
  type Range,
  type RangeOptions,
  type Store,
  type StoredRecord,
  type Subscription,
} from './store.ts'
import { type Persist, WriteQueue } from './write-queue.ts'

const maxKeyBytes = 0xffff

/** A store whose only writer is this process: the mirror is always up to date. */
export class LocalStore implements Store {
  readonly #mirror: Mirror
  readonly #queue: WriteQueue

  readonly #compactFiles: () => Promise<void>

  constructor(mirror: Mirror, persist: Persist, compactFiles = async (): Promise<void> => {}) {
    this.#mirror = mirror
    this.#compactFiles = compactFiles
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

  async create(key: string, value: Buffer): Promise<StoredRecord> {
    requireStorableKey(key)
    return this.#queue.submit({ type: 'create', key, value: leanValue(value) })
  }

  update(key: string, value: Buffer, expectedRevision: number): Promise<StoredRecord> {
    return this.#queue.submit({ type: 'update', key, value: leanValue(value), expectedRevision })
  }

  async delete(key: string, expectedRevision: number): Promise<number> {
    const { revision } = await this.#queue.submit({ type: 'delete', key, expectedRevision })
    return revision
  }

  watch(prefix: string, after: number, sink: EventSink): Subscription {
    return this.#mirror.watch(prefix, after, sink)
  }

  compact(): Promise<void> {
    return this.#queue.between(async () => {
      this.#mirror.compact()
      await this.#compactFiles()
    })
  }

  close(): Promise<void> {
    return this.#queue.close()
  }
}

/** A key must come back from disk as it was: whole, and not mended by UTF-8. */
function requireStorableKey(key: string): void {
  const bytes = Buffer.byteLength(key)
  if (bytes === 0 || bytes > maxKeyBytes || /\p{Surrogate}/u.test(key)) {
    throw new TypeError(`a key must be 1 to ${maxKeyBytes} bytes of well-formed text`)
  }
}

/** A store that forgets everything when the process ends. */
export function openMemoryStore(
  options: { readonly log?: Logger; readonly history?: HistoryLimits } = {},
): Store {
  const log = options.log ?? silentLogger
  const mirror = new Mirror({
    records: [],
    events: [],
    floor: firstRevision,
    revision: firstRevision,
    limits: options.history ?? defaultHistoryLimits,
    onSinkFailure: (err) => log.error({ err }, 'watch sink failed'),
  })
  return new LocalStore(mirror, () => Promise.resolve())
}
