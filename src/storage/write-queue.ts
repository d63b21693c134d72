import type { Mirror } from './mvcc/mvcc.ts'
import {
  KeyExists,
  RevisionMismatch,
  type StoredRecord,
  type StoreEvent,
  StoreWriteFailed,
} from './store.ts'

/** A write as it was asked for. */
export type Write =
  | { readonly type: 'create'; readonly key: string; readonly value: Buffer }
  | {
      readonly type: 'update'
      readonly key: string
      readonly value: Buffer
      readonly expectedRevision: number
    }
  | { readonly type: 'delete'; readonly key: string; readonly expectedRevision: number }

/** What becomes of a write if the batch is committed. */
export type Outcome =
  | { readonly event: StoreEvent }
  | {
      readonly refusal: KeyExists | RevisionMismatch
      /** The refusal rests on another write of the batch, so it is only true once that is committed. */
      readonly awaitsCommit: boolean
    }

/** Decides writes in order, each as if those before it in the batch had been committed. */
class BatchPlan {
  readonly events: StoreEvent[] = []
  readonly #held: (key: string) => StoredRecord | undefined
  readonly #overlay = new Map<string, StoredRecord | undefined>()
  #revision: number

  /** `held` and `revision`: the committed state that the batch starts from. */
  constructor(held: (key: string) => StoredRecord | undefined, revision: number) {
    this.#held = held
    this.#revision = revision
  }

  decide(write: Write): Outcome {
    const awaitsCommit = this.#overlay.has(write.key)
    const previous = awaitsCommit ? this.#overlay.get(write.key) : this.#held(write.key)
    const refusal = refusalOf(write, previous)
    if (refusal) return { refusal, awaitsCommit }
    const event = eventOf(write, previous, ++this.#revision)
    this.#overlay.set(write.key, event.type === 'put' ? event.record : undefined)
    this.events.push(event)
    return { event }
  }
}

function refusalOf(
  write: Write,
  held: StoredRecord | undefined,
): KeyExists | RevisionMismatch | undefined {
  if (write.type === 'create') {
    return held && new KeyExists(`${write.key} exists already, at revision ${held.revision}`)
  }
  if (held?.revision === write.expectedRevision) return undefined
  const state = held ? `at revision ${held.revision}` : 'not there'
  return new RevisionMismatch(
    `${write.key} is ${state}, not at revision ${write.expectedRevision}`,
    held,
  )
}

function eventOf(write: Write, previous: StoredRecord | undefined, revision: number): StoreEvent {
  const { key } = write
  if (write.type !== 'delete') {
    const record = { key, value: write.value, revision }
    return previous ? { type: 'put', record, previous } : { type: 'put', record }
  }
  // A delete that was not refused has something to delete.
  const last = previous as StoredRecord
  return { type: 'delete', record: { key, value: last.value, revision }, previous: last }
}

/** Makes the events of one commit durable, all or none; calls never overlap. */
export type Persist = (events: readonly StoreEvent[]) => Promise<void>

interface Pending {
  readonly write: Write
  resolve(record: StoredRecord): void
  reject(error: unknown): void
}

/** Bounds how long one commit takes and how much memory its encoding needs. */
const maxBatchWrites = 4096
const maxBatchBytes = 4 * 1024 ** 2

/**
 * Commits writes in groups: all that arrive while one group is being made durable form the next.
 * A write is answered after its commit is durable, visible and delivered to the watchers.
 */
export class WriteQueue {
  readonly #mirror: Mirror
  readonly #persist: Persist
  #pending: Pending[] = []
  #running: Promise<void> | undefined
  #closed = false

  constructor(mirror: Mirror, persist: Persist) {
    this.#mirror = mirror
    this.#persist = persist
  }

  /** Resolves to the committed record; for a delete, to the last value at the deletion's revision. */
  submit(write: Write): Promise<StoredRecord> {
    if (this.#closed) {
      return Promise.reject(new StoreWriteFailed('the store is closed; nothing was written'))
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ write, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Runs something while no commit is under way; those that arrive meanwhile wait for it. */
  async between(run: () => Promise<void>): Promise<void> {
    while (this.#running) await this.#running
    const running = run()
    this.#running = running.catch(() => {}).then(() => this.#run())
    await running
  }

  /** Takes no more writes; resolves when all taken ones have been answered. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) {
      // All requests of this turn of the event loop, and writers just answered, join the batch.
      await nextTurn()
      await this.#commit(this.#take())
    }
    this.#running = undefined
  }

  #take(): Pending[] {
    let bytes = 0
    let count = 0
    while (count < this.#pending.length && count < maxBatchWrites && bytes < maxBatchBytes) {
      const write = this.#pending[count++]?.write
      if (write && write.type !== 'delete') bytes += write.value.length
    }
    return this.#pending.splice(0, count)
  }

  async #commit(batch: readonly Pending[]): Promise<void> {
    const plan = new BatchPlan((key) => this.#mirror.peek(key), this.#mirror.revision)
    const answers: (() => void)[] = []
    const waiting: Pending[] = []
    for (const pending of batch) {
      const outcome = plan.decide(pending.write)
      const answer = this.#answer(pending, outcome)
      if ('refusal' in outcome && !outcome.awaitsCommit) answer()
      else {
        waiting.push(pending)
        answers.push(answer)
      }
    }
    if (waiting.length === 0) return
    try {
      await this.#persist(plan.events)
    } catch (error) {
      for (const pending of waiting) pending.reject(error)
      return
    }
    this.#mirror.commit(plan.events)
    for (const answer of answers) answer()
  }

  #answer(pending: Pending, outcome: Outcome): () => void {
    if ('event' in outcome) return () => pending.resolve(outcome.event.record)
    return () => pending.reject(outcome.refusal)
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
