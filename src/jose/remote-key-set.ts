import { type Clock, type Logger, unlessAborted, withinTime } from '../core/index.ts'

/** The keys of one load, by key id. */
export interface LoadedKeys<Key> {
  readonly keys: ReadonlyMap<string, Key>
  /** For how long they are fresh; if absent, they are only refreshed periodically and for unknown key ids. */
  readonly maxAgeMs?: number | undefined
}

/** How keys are loaded and for how long they are trusted. */
export interface RemoteKeySetOptions<Key> {
  /** Fails rather than returning no keys. */
  readonly load: (signal: AbortSignal) => Promise<LoadedKeys<Key>>
  /** For one load. */
  readonly timeoutMs: number
  /** Between loads after `start`; if absent, keys are loaded only when needed. */
  readonly refreshEveryMs?: number
  /** Minimum time between two loads for unknown key ids or expired keys. */
  readonly cooldownMs: number
  /** Minimum time between two loads while no keys are available. */
  readonly retryMs: number
  /** For how long a key is trusted after it was last published. */
  readonly graceMs: number
  /** For how long expired keys are trusted while none can be loaded. */
  readonly maxStaleMs: number
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** A moment by both clocks. */
interface Instant {
  readonly now: number
  readonly monotonic: number
}

/** Keys that another server publishes. One load serves all callers that wait for it. */
export class RemoteKeySet<Key> {
  readonly #options: RemoteKeySetOptions<Key>
  readonly #listeners: ((kid: string) => void)[] = []
  /** Every key that is trusted, and when it was last published. */
  readonly #published = new Map<string, { readonly key: Key; readonly at: Instant }>()
  #keys: ReadonlyMap<string, Key> = new Map()
  #maxAgeMs: number | undefined
  #triedAt: Instant | undefined
  #loadedAt: Instant | undefined
  #loading: Promise<void> | undefined
  #failure: unknown

  constructor(options: RemoteKeySetOptions<Key>) {
    this.#options = options
  }

  /** Loads the keys, then refreshes them periodically until the signal aborts. A failed load is logged. */
  async start(): Promise<void> {
    const { refreshEveryMs, retryMs, signal } = this.#options
    await this.#load()
    if (signal.aborted || refreshEveryMs === undefined) return
    const refresh = setInterval(() => void this.#load(), refreshEveryMs).unref()
    const retry = setInterval(() => {
      if (this.unavailable) void this.#load()
    }, retryMs).unref()
    const stop = (): void => {
      for (const timer of [refresh, retry]) clearInterval(timer)
    }
    signal.addEventListener('abort', stop, { once: true })
  }

  /** The trusted keys, after a refresh if they have expired or do not have this key id; none while `unavailable`. */
  async keysFor(kid: string | undefined): Promise<ReadonlyMap<string, Key>> {
    const isUnknown = kid !== undefined && !this.#keys.has(kid)
    if (this.unavailable || isUnknown || this.#isOlderThan(1)) await this.#refresh()
    // Before they expire, keys are refreshed in the background.
    else if (this.#isOlderThan(0.8)) void this.#refresh()
    return this.unavailable ? new Map() : this.#keys
  }

  /** Whether no key was ever loaded, or the last ones are too old to be trusted. */
  get unavailable(): boolean {
    return this.#sinceMs(this.#loadedAt) > (this.#maxAgeMs ?? 0) + this.#options.maxStaleMs
  }

  /** Why the last load failed; undefined if it succeeded. */
  get failure(): unknown {
    return this.#failure
  }

  /** Calls back for every key that is no longer trusted. */
  onRemoved(listener: (kid: string) => void): void {
    this.#listeners.push(listener)
  }

  #isOlderThan(share: number): boolean {
    const maxAgeMs = this.#maxAgeMs
    return maxAgeMs !== undefined && this.#sinceMs(this.#loadedAt) >= share * maxAgeMs
  }

  /** By the clock that has moved further: one can be set back, the other stops while a machine is suspended. */
  #sinceMs(instant: Instant | undefined): number {
    if (!instant) return Number.POSITIVE_INFINITY
    const { clock } = this.#options
    return Math.max(clock.now() - instant.now, clock.monotonic() - instant.monotonic)
  }

  #instant(): Instant {
    const { clock } = this.#options
    return { now: clock.now(), monotonic: clock.monotonic() }
  }

  /** Waits for a load, unless the last one was only a moment ago: tokens with unknown key ids cost no request each. */
  async #refresh(): Promise<void> {
    const minMs = this.unavailable ? this.#options.retryMs : this.#options.cooldownMs
    if (this.#loading || this.#sinceMs(this.#triedAt) >= minMs) await this.#load()
  }

  #load(): Promise<void> {
    this.#loading ??= this.#tryLoad().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #tryLoad(): Promise<void> {
    const { load, timeoutMs, signal, log } = this.#options
    this.#triedAt = this.#instant()
    try {
      // A load that ignores its signal must not block callers.
      const limited = (limit: AbortSignal) => unlessAborted(load(limit), limit)
      this.#replace(await withinTime(timeoutMs, signal, limited))
      this.#failure = undefined
    } catch (err) {
      this.#failure = err
      if (!signal.aborted) log.warn({ err }, 'cannot load keys')
    }
  }

  #replace({ keys, maxAgeMs }: LoadedKeys<Key>): void {
    const at = this.#instant()
    const added = [...keys.keys()].filter((kid) => !this.#published.has(kid))
    for (const [kid, key] of keys) this.#published.set(kid, { key, at })
    const removed = [...this.#published].flatMap(([kid, last]) =>
      !keys.has(kid) && this.#sinceMs(last.at) >= this.#options.graceMs ? [kid] : [],
    )
    for (const kid of removed) this.#published.delete(kid)
    this.#keys = new Map([...this.#published].map(([kid, { key }]) => [kid, key]))
    this.#loadedAt = at
    this.#maxAgeMs = maxAgeMs
    if (added.length + removed.length > 0)
      this.#options.log.info({ added, removed }, 'keys changed')
    for (const kid of removed) for (const listener of this.#listeners) listener(kid)
  }
}
