import { KeyExists, RevisionMismatch, type StoredRecord, type StoreEvent } from './contract.ts'

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
export class BatchPlan {
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
