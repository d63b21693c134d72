import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ApiError,
  Backoff,
  type BackoffOptions,
  type Clock,
  type ClusterView,
  type Key,
  type Kind,
  type KubeObject,
  type Logger,
  onAbort,
  type Query,
  type StatusReason,
  systemClock,
  unlessAborted,
} from '../core/index.ts'
import { type Change, cacheKey, ObjectCache } from './object-cache.ts'

const defaultBackoff: BackoffOptions = { initialMs: 100, maxMs: 10_000 }
/** A watch that stays open for so long resets the backoff, even if nothing changes. */
const minStableWatchMs = 5_000
/** After so many objects of a list or events, the event loop gets a turn. */
const maxObjectsPerTurn = 64

/** Errors after which the watch can resume at the same version; after all others a new list is needed. */
const resumable: readonly StatusReason[] = [
  'Unauthorized',
  'Forbidden',
  'TooManyRequests',
  'InternalError',
  'ServerTimeout',
  'ServiceUnavailable',
]

/** Called for each change. The next change waits for the promise that it returns. */
export type ChangeListener<T = KubeObject> = (change: Change<T>) => void | Promise<void>

/** Which objects an informer caches, and how. */
export interface InformerOptions<T = KubeObject> {
  readonly view: ClusterView
  readonly kind: Kind
  /** All objects of the kind unless given. */
  readonly query?: Query
  /**
   * The value that is cached of an object, the object itself unless given. Of an object whose value is `undefined`
   * nothing is cached, and only its deletion is reported.
   */
  readonly project?: (object: KubeObject) => T | undefined
  /** Whether two values are the same, so that there is no change to report; `Object.is` unless given. */
  equals?(a: T, b: T): boolean
  /** The terms under which `byIndex` finds a value. */
  index?(value: T): Iterable<string>
  /** Called after each list but the first. Deletions of objects that are not cached may have been missed before it. */
  readonly onRelist?: () => void
  /** Delays between attempts to list and watch, and to call a listener that throws. */
  readonly backoff?: BackoffOptions
  readonly clock?: Clock
  readonly log: Logger
  /** Stops the informer. */
  readonly signal: AbortSignal
}

/** A cache of the objects of one kind that a list and a watch keep up to date. */
export interface Informer<T = KubeObject> {
  /** Resolves when the first list is cached and reported; rejects if the signal aborts before that. */
  readonly synced: Promise<void>
  /** Resolves when the signal has aborted and nothing runs any more. */
  readonly ended: Promise<void>
  /** False while the watch is down: the cache may be stale. */
  readonly watching: boolean
  /** Monotonic time of the last list, event or bookmark; for a list the time of its request. */
  readonly confirmedAt: number
  get(key: Key): T | undefined
  /** All values, or those of one namespace. */
  list(namespace?: string): Iterable<T>
  /** The values that `index` returned this term for. */
  byIndex(term: string): Iterable<T>
  /**
   * Calls `listener` for each change, once and in order, until the returned function is called. A listener that
   * throws is called again after a backoff. A listener added right after `createInformer` gets the first list, too.
   */
  onChange(listener: ChangeListener<T>): () => void
  /**
   * Makes an own write visible at once. Its event is dropped when it arrives, and no listener is called. After a delete,
   * pass the object that was deleted and `delete`.
   */
  applied(object: KubeObject, op?: 'delete'): void
  /**
   * Lists again if nothing was heard for `maxAgeMs`; true if the cache is confirmed. A list that differs from the
   * cache starts list and watch anew. Rejects if the list fails or `signal` aborts.
   */
  confirm(maxAgeMs: number, signal: AbortSignal): Promise<boolean>
}

/**
 * Starts an informer, which runs until `options.signal` aborts. A lost watch resumes where it was; when the history no
 * longer reaches back so far (410), a new list brings the difference.
 *
 * @example
 * ```ts
 * const view = new RemoteClusterView(createKubeClient({ transport }))
 * const pods = { group: '', version: 'v1', kind: 'Pod', resource: 'pods', namespaced: true }
 * const informer = createInformer({ view, kind: pods, query: { namespace: 'default' }, log: silentLogger, signal })
 * informer.onChange(({ name, before, after }) => {
 *   report(name, after === undefined ? 'deleted' : before === undefined ? 'added' : 'changed')
 * })
 * await informer.synced
 * const web = informer.get({ namespace: 'default', name: 'web' })
 * ```
 */
export function createInformer(options: InformerOptions): Informer
export function createInformer<T>(
  options: InformerOptions<T> & Required<Pick<InformerOptions<T>, 'project'>>,
): Informer<T>
export function createInformer(options: InformerOptions<unknown>): Informer<unknown> {
  return new ListWatch(options, options.project ?? ((object) => object))
}

class ListWatch<T> implements Informer<T> {
  readonly synced: Promise<void>
  readonly ended: Promise<void>
  readonly #options: InformerOptions<T>
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #cache: ObjectCache<T>
  readonly #listeners = new Set<ChangeListener<T>>()
  /** Called at the end of the next list. */
  readonly #listWaiters: (() => void)[] = []
  #state: 'listing' | 'watching' | 'waiting' = 'listing'
  /** Ends what `#state` names. */
  #attempt = new AbortController()
  /** The version up to which the cache has all changes; without one a list is needed. */
  #version: string | undefined
  #isSynced = false
  #isReporting = false
  #confirmedAt = Number.NEGATIVE_INFINITY
  #objects = 0

  constructor(options: InformerOptions<T>, project: (object: KubeObject) => T | undefined) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#backoff = new Backoff(options.backoff ?? defaultBackoff)
    this.#cache = new ObjectCache({
      project,
      equals: (a, b) => options.equals?.(a, b) ?? Object.is(a, b),
      index: (value) => options.index?.(value) ?? [],
      reportsUncached: options.project !== undefined,
    })
    this.synced = this.#nextList().then(() => {
      if (!this.#isSynced) options.signal.throwIfAborted()
    })
    this.synced.catch(() => {}) // need not be awaited
    this.ended = this.#run()
  }

  get watching(): boolean {
    return this.#state === 'watching'
  }

  get confirmedAt(): number {
    return this.#confirmedAt
  }

  get({ namespace = '', name }: Key): T | undefined {
    return this.#cache.get(namespace, name)
  }

  list(namespace?: string): Iterable<T> {
    return this.#cache.values(namespace)
  }

  byIndex(term: string): Iterable<T> {
    return this.#cache.withTerm(term)
  }

  onChange(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  applied(object: KubeObject, op?: 'delete'): void {
    if (op === 'delete') this.#cache.deleted(object)
    else this.#cache.applied(object, this.#version)
  }

  async confirm(maxAgeMs: number, signal: AbortSignal): Promise<boolean> {
    const { view, kind, query = {} } = this.#options
    const requestedAt = this.#clock.monotonic()
    if (requestedAt - this.#confirmedAt < maxAgeMs) return true
    const { items } = await unlessAborted(view.list(kind, query, signal), signal)
    if (this.#isReporting) return false
    if (this.#isSynced && this.#cache.hasExactly(items)) {
      this.#confirmed(requestedAt)
      return true
    }
    // The watch is late or dead. This list may be older than an event that came meanwhile; the next one is not.
    if (this.#state !== 'listing') this.#attempt.abort()
    await unlessAborted(this.#nextList(), signal)
    return this.#confirmedAt >= requestedAt
  }

  async #run(): Promise<void> {
    const { signal } = this.#options
    while (!signal.aborted) {
      const attempt = new AbortController()
      this.#attempt = attempt
      const release = onAbort(signal, () => attempt.abort(signal.reason))
      await this.#listAndWatch(attempt.signal)
      release()
      if (attempt.signal.aborted) this.#version = undefined
    }
    for (const resolve of this.#listWaiters.splice(0)) resolve()
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    let retryAfterMs = 0
    try {
      const from = this.#version ?? (await this.#list(signal))
      await this.#watch(from, signal)
    } catch (error) {
      if (!signal.aborted) retryAfterMs = this.#failed(error)
    }
    this.#state = 'waiting'
    if (!signal.aborted) await this.#backoff.wait(signal, retryAfterMs)
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { view, kind, query = {}, onRelist } = this.#options
    this.#state = 'listing'
    this.#cache.beginList()
    const requestedAt = this.#clock.monotonic()
    const { items, resourceVersion } = await unlessAborted(view.list(kind, query, signal), signal)
    await this.#replace(items, resourceVersion)
    signal.throwIfAborted()
    this.#version = resourceVersion
    this.#confirmed(requestedAt)
    if (this.#isSynced) onRelist?.()
    this.#isSynced = true
    for (const resolve of this.#listWaiters.splice(0)) resolve()
    return resourceVersion
  }

  /** Deletions come first: no reader finds an object of the old list next to the one that replaces it. */
  async #replace(items: readonly KubeObject[], version: string): Promise<void> {
    const listed = new Set<string>()
    for (const { metadata } of items) {
      listed.add(cacheKey(metadata))
      if (this.#isTurnOver()) await nextTurn()
    }
    for (const change of this.#cache.removeUnlisted(listed, version)) {
      if (change) await this.#report([change])
      if (this.#isTurnOver()) await nextTurn()
    }
    for (const item of items) {
      const changes = this.#cache.put(item, version)
      if (changes.length > 0) await this.#report(changes)
      if (this.#isTurnOver()) await nextTurn()
    }
  }

  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { view, kind, query } = this.#options
    const startedAt = this.#clock.monotonic()
    const events = view.watch(kind, { ...query, from }, signal)
    this.#state = 'watching'
    try {
      for await (const event of untilAborted(events, signal)) {
        const receivedAt = this.#clock.monotonic()
        const changes = this.#cache.handle(event)
        this.#version = event.object.metadata.resourceVersion ?? this.#version
        if (changes.length > 0) await this.#report(changes)
        this.#confirmed(receivedAt)
        this.#backoff.reset()
        if (this.#isTurnOver()) await nextTurn()
      }
    } finally {
      this.#state = 'waiting'
      if (this.#clock.monotonic() - startedAt >= minStableWatchMs) this.#backoff.reset()
    }
  }

  /** Decides how to go on after an error; returns the delay that the server asks for. */
  #failed(err: unknown): number {
    const { log, kind } = this.#options
    const status = err instanceof ApiError ? err : undefined
    if (status && !resumable.includes(status.reason)) this.#version = undefined
    const fields = { err, kind: kind.kind, resource: kind.resource }
    if (status?.reason === 'Expired' || status?.reason === 'Gone')
      log.info(fields, 'watch history expired, listing again')
    else log.warn(fields, 'cannot list or watch, retrying')
    return (status?.details?.retryAfterSeconds ?? 0) * 1_000
  }

  #confirmed(at: number): void {
    this.#confirmedAt = Math.max(this.#confirmedAt, at)
  }

  #nextList(): Promise<void> {
    if (this.#options.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => this.#listWaiters.push(resolve))
  }

  async #report(changes: readonly Change<T>[]): Promise<void> {
    this.#isReporting = true
    const listeners = [...this.#listeners]
    for (const change of changes)
      for (const listener of listeners) await this.#call(listener, change)
    this.#isReporting = false
  }

  async #call(listener: ChangeListener<T>, change: Change<T>): Promise<void> {
    const { backoff = defaultBackoff, kind, log, signal } = this.#options
    let delays: Backoff | undefined
    while (this.#listeners.has(listener) && !signal.aborted) {
      try {
        return await listener(change)
      } catch (err) {
        const { namespace, name } = change
        log.error({ err, kind: kind.kind, namespace, name }, 'informer listener failed, retrying')
        delays ??= new Backoff(backoff)
        await delays.wait(signal)
      }
    }
    return undefined
  }

  /** True after so many objects that the event loop must get a turn. */
  #isTurnOver(): boolean {
    this.#objects += 1
    return this.#objects % maxObjectsPerTurn === 0
  }
}

/** The items of `source` until `signal` aborts, even if the source does not react to it. */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  let cancel = (): void => {}
  // A source that reacts to the signal ends by itself in this turn of the event loop.
  const release = onAbort(signal, () => setImmediate(() => cancel()))
  try {
    for (;;) {
      const next = await new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
        cancel = () => resolve(undefined)
        iterator.next().then(resolve, reject)
      })
      if (signal.aborted || next === undefined || next.done === true) return
      yield next.value
    }
  } finally {
    release()
    Promise.resolve(iterator.return?.()).catch(() => {}) // may never settle
  }
}
