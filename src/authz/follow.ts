import type { Query, WatchEvent } from '../core/index.ts'
import {
  ApiError,
  type ClusterView,
  type Kind,
  type KubeObject,
  type Logger,
} from '../core/index.ts'

const firstPauseMs = 50
const longestPauseMs = 1_000

/** Which objects to follow, and where. */
export interface FollowOptions {
  readonly view: ClusterView
  readonly kind: Kind
  readonly query?: Query
  readonly log: Logger
}

/** Who keeps a picture of the objects. */
export interface Follower {
  /** An object is new or has changed. */
  put(object: KubeObject): void
  remove(object: KubeObject): void
}

/** A running list and watch. */
export interface Following {
  /** Resolves once the first list is taken in; rejects when the signal aborts before that. */
  readonly synced: Promise<void>
  /** Resolves after the signal has aborted and nothing runs any more. */
  readonly ended: Promise<void>
}

/**
 * Keeps `follower` up to date by list and watch until `signal` aborts. A lost watch leaves what is
 * known as it is and is taken up again; when history no longer reaches back (410) it lists anew.
 */
export function follow(options: FollowOptions, follower: Follower, signal: AbortSignal): Following {
  const run = new FollowRun(options, follower, signal)
  const ended = run.loop()
  return { synced: run.synced, ended }
}

class FollowRun {
  readonly synced: Promise<void>
  readonly #options: FollowOptions
  readonly #follower: Follower
  readonly #signal: AbortSignal
  readonly #known = new Map<string, KubeObject>()
  #from: string | undefined
  #pauseMs = firstPauseMs
  #resolveSynced = () => {}
  #rejectSynced = (_reason: unknown) => {}

  constructor(options: FollowOptions, follower: Follower, signal: AbortSignal) {
    this.#options = options
    this.#follower = follower
    this.#signal = signal
    this.synced = new Promise((resolve, reject) => {
      this.#resolveSynced = resolve
      this.#rejectSynced = reject
    })
    this.synced.catch(() => {}) // whoever does not wait for it must not be killed by it
  }

  async loop(): Promise<void> {
    while (!this.#signal.aborted) {
      await this.#once().catch((error: unknown) => {
        this.#note(error)
      })
      if (this.#signal.aborted) break
      await pause(this.#pauseMs, this.#signal)
      this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs)
    }
    this.#rejectSynced(this.#signal.reason)
  }

  async #once(): Promise<void> {
    const { view, kind, query = {} } = this.#options
    if (this.#from === undefined) {
      const list = await view.list(kind, query, this.#signal)
      this.#replace(list.items)
      this.#from = list.resourceVersion
      this.#resolveSynced()
    }
    const events = view.watch(kind, { ...query, from: this.#from }, this.#signal)
    for await (const event of events) this.#take(event)
  }

  #take(event: WatchEvent): void {
    this.#pauseMs = firstPauseMs
    this.#from = event.object.metadata.resourceVersion ?? this.#from
    if (event.type === 'BOOKMARK') return
    const key = keyOf(event.object)
    if (event.type === 'DELETED') {
      this.#known.delete(key)
      this.#follower.remove(event.object)
    } else {
      this.#known.set(key, event.object)
      this.#follower.put(event.object)
    }
  }

  #replace(items: readonly KubeObject[]): void {
    const gone = new Map(this.#known)
    for (const item of items) {
      const key = keyOf(item)
      const before = gone.get(key)
      gone.delete(key)
      this.#known.set(key, item)
      const version = item.metadata.resourceVersion
      if (version === undefined || before?.metadata.resourceVersion !== version) {
        this.#follower.put(item)
      }
    }
    for (const [key, object] of gone) {
      this.#known.delete(key)
      this.#follower.remove(object)
    }
  }

  #note(err: unknown): void {
    if (this.#signal.aborted) return
    const kind = this.#options.kind.kind
    if (err instanceof ApiError && (err.reason === 'Expired' || err.reason === 'Gone')) {
      this.#from = undefined
      this.#pauseMs = firstPauseMs
      this.#options.log.info({ kind }, 'watch history is gone, listing again')
    } else {
      this.#options.log.warn({ err, kind }, 'watch lost, serving what was last known')
    }
  }
}

const keyOf = (object: KubeObject) => `${object.metadata.namespace ?? ''}/${object.metadata.name}`

/** Resolves after `ms`, or as soon as `signal` aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
