import { follow } from '../../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  type KubeObject,
  type Logger,
  pause,
  wellKnownKinds,
} from '../../../core/index.ts'
import { isValidLease } from '../../leases/index.ts'
import type { AgentMetrics } from '../agent-metrics.ts'
import { measuredView } from './measured-view.ts'
import type { CountSource } from './server-count.ts'

const reopenMs = 10_000

/** Where the Leases are, and what counting them needs. */
export interface LeaseCountParts {
  /** Opens the way to the cluster; tried again when it fails. */
  readonly view: () => Promise<ClusterView>
  readonly namespace: string
  readonly labelSelector: string
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly log: Logger
}

/** Counts servers by their Leases; while none is known it says what it said last. */
export class LeaseCount implements CountSource {
  readonly #parts: LeaseCountParts
  readonly #leases = new Map<string, KubeObject>()
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #last = 0

  constructor(parts: LeaseCountParts) {
    this.#parts = parts
  }

  /** Begins to watch; a cluster that cannot be reached is tried again and holds up nobody. */
  start(): void {
    this.#running ??= this.#run(this.#stop.signal)
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { namespace, labelSelector, metrics, clock, log } = this.#parts
    const view = await this.#open(signal)
    if (view === undefined) return
    const following = follow(
      {
        view: measuredView(view, metrics, clock),
        kind: wellKnownKinds.lease,
        query: { namespace, labelSelector },
        log,
        clock,
      },
      {
        put: (lease) => void this.#leases.set(lease.metadata.name, lease),
        remove: (lease) => void this.#leases.delete(lease.metadata.name),
      },
      signal,
    )
    following.synced.catch(() => {}) // ended before the first list
    await following.ended
  }

  async #open(signal: AbortSignal): Promise<ClusterView | undefined> {
    while (!signal.aborted) {
      try {
        return await this.#parts.view()
      } catch (err) {
        this.#parts.log.warn({ err }, 'cannot look for the Leases of servers, trying again')
      }
      await pause(reopenMs, signal)
    }
    return undefined
  }

  count(): number {
    const now = this.#parts.clock.now()
    const valid = [...this.#leases.values()].filter((lease) => isValidLease(lease, now)).length
    if (valid > 0) this.#last = valid
    return this.#last
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}
