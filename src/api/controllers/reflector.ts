import { setImmediate as nextTurn } from 'node:timers/promises'
import { hasReason, type Key, pause, type WatchEvent } from '../../core/index.ts'
import type { ControllerOptions, Watch } from './controller.ts'

const firstPauseMs = 50
const longestPauseMs = 5_000
/** After so many events or items, everybody else gets a turn. */
const eventsPerTurn = 64

const idOf = ({ namespace = '', name }: Key): string => `${namespace}/${name}`

/** Keeps one watch's picture up to date by list and watch, and passes on the keys it asks for. */
export class Reflector {
  /** Resolves once the first list is taken in. Never rejects: a run that is aborted just ends. */
  readonly synced: Promise<void>
  readonly #watch: Watch
  readonly #options: ControllerOptions
  readonly #enqueue: (key: string) => void
  #markSynced = (): void => {}
  #isSynced = false
  #from: string | undefined
  #pauseMs = firstPauseMs

  constructor(watch: Watch, options: ControllerOptions, enqueue: (key: string) => void) {
    this.#watch = watch
    this.#options = options
    this.#enqueue = enqueue
    this.synced = new Promise((resolve) => {
      this.#markSynced = resolve
    })
  }

  /**
   * Runs until `signal` aborts. A lost watch is taken up where it was; when history no longer
   * reaches back that far (410), everything is listed again.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#listAndWatch(signal)
      } catch (error) {
        if (!signal.aborted) this.#note(error)
      }
      await pause(this.#pauseMs, signal)
      this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs)
    }
    this.#markSynced()
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    const { kind, query } = this.#watch
    if (this.#from === undefined) {
      this.#from = await this.#list(signal)
      if (this.#isSynced) this.#pass(this.#watch.relisted?.() ?? [])
      this.#isSynced = true
      this.#markSynced()
    }
    const events = this.#options.view.watch(kind, { ...query, from: this.#from }, signal)
    let taken = 0
    for await (const event of events) {
      this.#take(event)
      if (++taken % eventsPerTurn === 0) await nextTurn()
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { kind, query } = this.#watch
    const { items, resourceVersion } = await this.#options.view.list(kind, query, signal)
    const gone = new Map([...this.#watch.known()].map((key) => [idOf(key), key]))
    for (const [index, item] of items.entries()) {
      gone.delete(idOf(item.metadata))
      this.#pass(this.#watch.put(item))
      if ((index + 1) % eventsPerTurn === 0) await nextTurn()
    }
    for (const key of gone.values()) this.#pass(this.#watch.remove(key))
    return resourceVersion
  }

  #take({ type, object }: WatchEvent): void {
    this.#pauseMs = firstPauseMs
    this.#from = object.metadata.resourceVersion ?? this.#from
    if (type === 'DELETED') this.#pass(this.#watch.remove(object.metadata))
    else if (type !== 'BOOKMARK') this.#pass(this.#watch.put(object))
  }

  #pass(keys: Iterable<string>): void {
    for (const key of keys) this.#enqueue(key)
  }

  #note(err: unknown): void {
    const { kind } = this.#watch.kind
    if (hasReason(err, 'Expired', 'Gone')) {
      this.#from = undefined
      this.#options.log.info({ kind }, 'watch history is gone, listing again')
    } else {
      this.#options.log.warn({ err, kind }, 'watch lost')
    }
  }
}
