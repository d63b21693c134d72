import { BatchPlan, type Outcome, type Write } from './batch-plan.ts'
import {
  RevisionMismatch,
  type StoredRecord,
  type StoreEvent,
  StoreWriteFailed,
} from './contract.ts'
import type { Mirror } from './mirror/mirror.ts'

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
    const { refusal } = outcome
    // A refusal shows what the key holds, and a damaged value must not be shown.
    const current = refusal instanceof RevisionMismatch ? refusal.current : undefined
    return () => pending.reject((current && this.#mirror.damageOf(current)) ?? refusal)
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
