import { ApiError, type Query } from '../../core/index.ts'
import {
  RecordDamaged,
  RevisionCompacted,
  type StoredRecord,
  type StoreEvent,
  type Subscription,
} from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { storePrefix } from './object-bytes.ts'
import type { RegistryContext } from './registry.ts'
import { type Selection, selectionOf } from './selection.ts'

/** A change as one watcher sees it: its selectors decide whether an object comes, stays or goes. */
export interface ObjectChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly record: StoredRecord
}

/** Who watches objects. */
export interface ChangeSink {
  /** The changes of one commit. `source` is the same array for all watchers without selectors. */
  commit(source: readonly StoreEvent[], selection: Selection): void
}

/** What an event means to a watcher with `selection`; `undefined` when it does not concern them. */
export function changeOf(event: StoreEvent, selection: Selection): ObjectChange | undefined {
  const { record, previous } = event
  if (event.type === 'delete')
    return selection.matches(record) ? { type: 'DELETED', record } : undefined
  const had = previous !== undefined && selection.matches(previous)
  if (selection.matches(record)) return { type: had ? 'MODIFIED' : 'ADDED', record }
  // To this watcher the object is gone: it gets what it knew, at the revision of the change.
  return had ? { type: 'DELETED', record: { ...previous, revision: record.revision } } : undefined
}

/** The 410 by which a watcher learns that it must list again. */
const tooOld = (asked: number, oldest: number): ApiError =>
  new ApiError('Expired', `too old resource version: ${asked} (${oldest})`)

/** Watches the objects that `query` means, after revision `after`; throws `Expired` when that is too old. */
export function watchObjects(
  context: RegistryContext,
  definition: KindDefinition,
  query: Query & { readonly after: number },
  sink: ChangeSink,
): Subscription {
  const selection = selectionOf(definition, query)
  const prefix = storePrefix(definition.kind, query)
  try {
    return context.store.watch(prefix, query.after, (events) => sink.commit(events, selection))
  } catch (error) {
    // A damaged value of the past is as good as forgotten: clients list again.
    if (error instanceof RevisionCompacted || error instanceof RecordDamaged)
      throw tooOld(query.after, context.store.oldestRevision)
    throw error
  }
}

/** How many changes a reader may fall behind before its watch is ended. */
const maxBehind = 100_000

/** Turns pushed changes into an async sequence; ends when closed or when the reader falls too far behind. */
export class ChangeQueue implements AsyncIterable<ObjectChange> {
  #changes: ObjectChange[] = []
  #wake: (() => void) | undefined
  #closed = false

  push(change: ObjectChange): void {
    if (this.#closed) return
    this.#changes.push(change)
    if (this.#changes.length > maxBehind) this.#closed = true
    this.#wake?.()
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ObjectChange> {
    for (;;) {
      const ready = this.#changes
      this.#changes = []
      yield* ready
      if (this.#changes.length > 0) continue
      if (this.#closed) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
  }
}
