import { isDeepStrictEqual } from 'node:util'
import type { Following } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  type Kind,
  type KubeObject,
  type Logger,
  type Query,
  withinTime,
} from '../../core/index.ts'

/** What is followed, and what is kept of each object. */
export interface ConfirmedOptions<Fact> {
  readonly view: ClusterView
  readonly kind: Kind
  readonly query: Query
  readonly factOf: (object: KubeObject) => Fact
  /** Called after every change. */
  readonly changed: () => void
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const answerMs = 10_000
const againMs = 5_000

/**
 * Facts about objects that are watched, and when the cluster last confirmed them. An open watch alone confirms
 * nothing: a network that swallows everything leaves it open. Where it is silent, the cluster is asked for a list, and
 * one that shows the same facts confirms them.
 */
export class ConfirmedFollowing<Fact> {
  readonly #options: ConfirmedOptions<Fact>
  readonly #facts = new Map<string, Fact>()
  #confirmedAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.NEGATIVE_INFINITY
  #isAsking = false

  constructor(options: ConfirmedOptions<Fact>) {
    this.#options = options
  }

  /** By the names of their objects. */
  get facts(): ReadonlyMap<string, Fact> {
    return this.#facts
  }

  /** On the monotonic clock. */
  get confirmedAt(): number {
    return this.#confirmedAt
  }

  /** Begins to follow; resolves once all objects were seen. */
  async start(): Promise<Following> {
    // Loaded here, so that a guard with a fixed list does not pay for a client of the API server.
    const { follow } = await import('../../client/index.ts')
    const { kind, query, factOf, changed, clock, log, signal } = this.#options
    const follower = {
      put: (object: KubeObject): void => {
        this.#facts.set(object.metadata.name, factOf(object))
        changed()
      },
      remove: ({ metadata }: KubeObject): void => {
        this.#facts.delete(metadata.name)
        changed()
      },
    }
    return follow({ view: this.#overheard(), kind, query, log, clock }, follower, signal)
  }

  /** Asks the cluster whether it is still so, if it has said nothing for so long. */
  confirm(afterMs: number): void {
    const now = this.#options.clock.monotonic()
    const isDue = now - this.#confirmedAt >= afterMs && now - this.#askedAt >= againMs
    if (!isDue || this.#isAsking) return
    this.#askedAt = now
    this.#isAsking = true
    void this.#ask().finally(() => {
      this.#isAsking = false
    })
  }

  async #ask(): Promise<void> {
    const { view, kind, query, factOf, log, signal } = this.#options
    try {
      const list = (within: AbortSignal) => view.list(kind, query, within)
      const { items } = await withinTime(answerMs, signal, list)
      const seen = new Map(items.map((item) => [item.metadata.name, factOf(item)]))
      // If not, the watch is about to say so, or it is dead.
      if (isDeepStrictEqual(seen, this.#facts)) this.#heard()
    } catch (err) {
      if (!signal.aborted) log.warn({ err, kind: kind.kind }, 'the cluster cannot be asked')
    }
  }

  #heard(): void {
    this.#confirmedAt = this.#options.clock.monotonic()
  }

  /** The same view, of which every word is noticed, bookmarks too. */
  #overheard(): ClusterView {
    const { view } = this.#options
    const heard = (): void => this.#heard()
    return {
      get: (...asked) => view.get(...asked),
      list: async (...asked) => {
        const list = await view.list(...asked)
        heard()
        return list
      },
      watch: async function* (...asked) {
        for await (const event of view.watch(...asked)) {
          heard()
          yield event
        }
      },
      write: (...asked) => view.write(...asked),
      review: (...asked) => view.review(...asked),
    }
  }
}
