import {
  ApiError,
  type Clock,
  type ClusterView,
  type Kind,
  type KubeObject,
  type Logger,
  type Query,
  type StatusReason,
  systemClock,
} from '../core/index.ts'
import { BackOff } from './back-off.ts'
import { type Follower, Picture } from './picture.ts'

/** A watch that lived this long was a good one, even if nothing happened. */
const goodWatchMs = 5_000
const defaultPauses = { firstMs: 100, longestMs: 10_000 }

/** Refusals after which the same watch may well be accepted; after any other a new list is needed. */
const passing: readonly StatusReason[] = [
  'Unauthorized',
  'Forbidden',
  'TooManyRequests',
  'InternalError',
  'ServerTimeout',
  'ServiceUnavailable',
]

/** Which objects to follow, and where. */
export interface FollowOptions {
  readonly view: ClusterView
  readonly kind: Kind
  readonly query?: Query
  readonly log: Logger
  /** What the follower is told of an object, and what is kept of it; all of it unless given. */
  readonly project?: (object: KubeObject) => KubeObject
  /** The machine's unless given. */
  readonly clock?: Clock
  /** How long to wait between attempts: at first, and at most. */
  readonly pauses?: { readonly firstMs: number; readonly longestMs: number }
}

/** A running list and watch. */
export interface Following {
  /** Resolves once the first list is taken in; rejects when the signal aborts before that. */
  readonly synced: Promise<void>
  /** Resolves after the signal has aborted and nothing runs any more. */
  readonly ended: Promise<void>
  /** True while a watch is open: what the follower was told is then as new as the view can tell. */
  readonly watching: boolean
}

/**
 * Tells `follower` of every object and every change, each once and in order, until `signal` aborts.
 * A lost watch goes on where it was; when history no longer reaches back, a new list tells what has
 * changed meanwhile. A follower that throws is told the same again after a pause.
 */
export function follow(options: FollowOptions, follower: Follower, signal: AbortSignal): Following {
  const run = new FollowRun(options, follower, signal)
  const ended = run.loop()
  return {
    synced: run.synced,
    ended,
    get watching() {
      return run.watching
    },
  }
}

class FollowRun {
  readonly synced: Promise<void>
  watching = false
  readonly #options: FollowOptions
  readonly #signal: AbortSignal
  readonly #picture: Picture
  readonly #backOff: BackOff
  /** The version that the picture shows; without one a list is needed. */
  #from: string | undefined
  #resolveSynced = () => {}
  #rejectSynced = (_reason: unknown) => {}

  constructor(options: FollowOptions, follower: Follower, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#picture = new Picture(follower)
    this.#backOff = new BackOff(options.pauses ?? defaultPauses)
    this.synced = new Promise((resolve, reject) => {
      this.#resolveSynced = resolve
      this.#rejectSynced = reject
    })
    this.synced.catch(() => {}) // whoever does not wait for it must not be killed by it
  }

  async loop(): Promise<void> {
    while (!this.#signal.aborted) {
      let atLeastMs = 0
      try {
        this.#from ??= await this.#list()
        await this.#watch(this.#from)
      } catch (error) {
        if (this.#signal.aborted) break
        atLeastMs = this.#judge(error)
      }
      await this.#backOff.pause(this.#signal, atLeastMs)
    }
    this.#rejectSynced(this.#signal.reason)
  }

  async #list(): Promise<string> {
    const { view, kind, query = {}, project } = this.#options
    const { items, resourceVersion } = await view.list(kind, query, this.#signal)
    await this.#picture.replace(project ? items.map(project) : items)
    this.#resolveSynced()
    return resourceVersion
  }

  async #watch(from: string): Promise<void> {
    const { view, kind, query, clock = systemClock, project } = this.#options
    const began = clock.monotonic()
    this.watching = true
    try {
      for await (const event of view.watch(kind, { ...query, from }, this.#signal)) {
        if (this.#signal.aborted) return
        const { object } = event
        await this.#picture.take(project ? { ...event, object: project(object) } : event)
        this.#from = event.object.metadata.resourceVersion ?? this.#from
        this.#backOff.reset()
      }
    } finally {
      this.watching = false
      if (clock.monotonic() - began >= goodWatchMs) this.#backOff.reset()
    }
  }

  /** Decides how to go on after a failure; returns how long the server wants to be left alone. */
  #judge(err: unknown): number {
    const { log, kind } = this.#options
    const refusal = err instanceof ApiError ? err : undefined
    if (refusal && !passing.includes(refusal.reason)) this.#from = undefined
    const fields = { err, kind: kind.kind, resource: kind.resource }
    if (refusal?.reason === 'Expired' || refusal?.reason === 'Gone')
      log.info(fields, 'watch history is gone, listing again')
    else log.warn(fields, 'cannot follow changes, trying again')
    return (refusal?.details?.retryAfterSeconds ?? 0) * 1000
  }
}
