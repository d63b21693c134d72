import { readFile } from 'node:fs/promises'
import {
  createInformer,
  createKubeClient,
  type Informer,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  type Kind,
  type Logger,
  pause,
  type Query,
  type WatchEvent,
  wellKnownKinds,
} from '../../../core/index.ts'
import { inClusterContext, parseKubeconfig, resolveContext } from '../../../kubeconfig/index.ts'
import { isValidLease, leaseAnswer, leasesAnswered } from '../../lease-validity.ts'
import type { AgentMetrics } from '../metrics.ts'

/** How many servers there are, as one source knows it; 0 when it does not know. */
interface CountSource {
  count(): number
}

/** The count of the last server that said one. */
export class AnsweredCount implements CountSource {
  #last = 0

  /** A server has been reached, and has said how many there are or nothing. */
  heard(count: number | undefined): void {
    if (count !== undefined && count > 0) this.#last = count
  }

  count(): number {
    return this.#last
  }
}

/** Which sources there are, and how they go together. */
export interface CountSources {
  readonly answers: CountSource
  readonly leases?: CountSource
  /** `max` takes the larger of both; otherwise Leases are asked alone if they are counted. */
  readonly source: 'default' | 'max' | ''
}

/** The number of servers to connect to, at least one. */
export function serverCount({ answers, leases, source }: CountSources): number {
  if (leases === undefined) return Math.max(1, answers.count())
  const counted = source === 'max' ? Math.max(leases.count(), answers.count()) : leases.count()
  return Math.max(1, counted)
}

/** A view whose lists and watches are counted. */
function measuredView(view: ClusterView, metrics: AgentMetrics, clock: Clock): ClusterView {
  return {
    get: (kind, key, signal) => view.get(kind, key, signal),
    write: (op, object, options, signal) => view.write(op, object, options, signal),
    review: (kind, object, signal) => view.review(kind, object, signal),
    list: async (kind, query, signal) => {
      const began = clock.monotonic()
      const seconds = (): number => (clock.monotonic() - began) / 1_000
      try {
        const list = await view.list(kind, query, signal)
        metrics.leasesListed(leasesAnswered, seconds())
        return list
      } catch (error) {
        if (!signal.aborted) metrics.leasesListed(leaseAnswer(error), seconds())
        throw error
      }
    },
    watch: (kind, query, signal) => countedWatch({ view, metrics, kind, query }, signal),
  }
}

interface Watch {
  readonly view: ClusterView
  readonly metrics: AgentMetrics
  readonly kind: Kind
  readonly query: Query & { readonly from: string }
}

async function* countedWatch(
  { view, metrics, kind, query }: Watch,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  try {
    yield* view.watch(kind, query, signal)
    metrics.leasesWatched(leasesAnswered)
  } catch (error) {
    if (!signal.aborted) metrics.leasesWatched(leaseAnswer(error))
    throw error
  }
}

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

/** Counts servers by their Leases; while none is valid, the last count stays. */
export class LeaseCount implements CountSource {
  readonly #parts: LeaseCountParts
  readonly #stop = new AbortController()
  #leases: Informer | undefined
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
    this.#leases = createInformer({
      view: measuredView(view, metrics, clock),
      kind: wellKnownKinds.lease,
      query: { namespace, labelSelector },
      log,
      clock,
      signal,
    })
    await this.#leases.ended
  }

  async #open(signal: AbortSignal): Promise<ClusterView | undefined> {
    while (!signal.aborted) {
      try {
        return await this.#parts.view()
      } catch (err) {
        this.#parts.log.warn({ err }, 'cannot read the Leases of servers, retrying')
      }
      await pause(reopenMs, signal)
    }
    return undefined
  }

  count(): number {
    const now = this.#parts.clock.now()
    const leases = [...(this.#leases?.list() ?? [])]
    const valid = leases.filter((lease) => isValidLease(lease, now)).length
    if (valid > 0) this.#last = valid
    return this.#last
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}

/** How the cluster that has the Leases is found. */
export interface LeaseViewOptions {
  /** Empty inside a Pod. */
  readonly kubeconfig: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The cluster that a kubeconfig names or that this Pod runs in; asks it nothing yet. */
export async function openLeaseView({ kubeconfig, env }: LeaseViewOptions): Promise<ClusterView> {
  const context =
    kubeconfig === ''
      ? await inClusterContext({ env })
      : resolveContext(await parseKubeconfig(await readFile(kubeconfig, 'utf8'), kubeconfig))
  const transport = await transportFromKubeconfig(context)
  return new RemoteClusterView(createKubeClient({ transport }))
}
