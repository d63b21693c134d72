import type { Clock, ClusterView, Kind, Query, WatchEvent } from '../../../core/index.ts'
import { leaseAnswer, leasesAnswered } from '../../leases/index.ts'
import type { AgentMetrics } from '../agent-metrics.ts'

/** A view whose lists and watches are counted. */
export function measuredView(view: ClusterView, metrics: AgentMetrics, clock: Clock): ClusterView {
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
