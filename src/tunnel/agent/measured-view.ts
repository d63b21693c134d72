import {
  ApiError,
  type Clock,
  type ClusterView,
  httpCodeOf,
  type Kind,
  type Query,
  type WatchEvent,
} from '../../core/index.ts'
import type { AgentMetrics, LeaseAnswer } from './agent-metrics.ts'

const answered: LeaseAnswer = { code: 200, reason: '' }

const answerOf = (error: unknown): LeaseAnswer =>
  error instanceof ApiError
    ? { code: httpCodeOf[error.reason], reason: error.reason }
    : { code: 0, reason: 'Unknown' }

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
        metrics.leasesListed(answered, seconds())
        return list
      } catch (error) {
        if (!signal.aborted) metrics.leasesListed(answerOf(error), seconds())
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
    metrics.leasesWatched(answered)
  } catch (error) {
    if (!signal.aborted) metrics.leasesWatched(answerOf(error))
    throw error
  }
}
