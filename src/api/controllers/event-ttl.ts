import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type KubeObject,
} from '../../core/index.ts'
import { event } from '../kinds/index.ts'
import { type Controller, deleted, forEachAtOnce } from './run-controller.ts'

const maxSweepIntervalMs = 60_000

/** What the event controller works with. */
export interface EventTtlOptions {
  readonly view: ClusterView
  readonly clock: Clock
  readonly ttlMs: number
}

interface KnownEvent {
  readonly namespace: string
  readonly name: string
  readonly resourceVersion: string | undefined
  /** Epoch milliseconds of the last sign of life. */
  readonly seenAt: number
}

/** When an event was last reported: each report counts anew, as it does in Kubernetes. */
function lastSeen(object: KubeObject): number {
  const series = object['series']
  const times = [
    object.metadata.creationTimestamp,
    object['eventTime'],
    object['lastTimestamp'],
    isRecord(series) ? series['lastObservedTime'] : undefined,
  ]
  const known = times.map((time) => (typeof time === 'string' ? Date.parse(time) : Number.NaN))
  return Math.max(0, ...known.filter((time) => !Number.isNaN(time)))
}

/** Deletes events that nobody has reported again for `ttlMs`. */
export function createEventTtlController({ view, clock, ttlMs }: EventTtlOptions): Controller {
  const remove = async (known: KnownEvent, signal: AbortSignal): Promise<void> => {
    const { namespace, name, resourceVersion } = known
    const object = { apiVersion: 'v1', kind: 'Event', metadata: { name, namespace } }
    const options = resourceVersion === undefined ? {} : { resourceVersion }
    try {
      await deleted(view.write('delete', object, options, signal))
    } catch (error) {
      // Reported again just now.
      if (!hasReason(error, 'Conflict')) throw error
    }
  }
  return {
    name: 'event-ttl',
    start({ watch, enqueue }) {
      const events = watch<KnownEvent>({
        kind: event.kind,
        project: (object) => ({
          namespace: object.metadata.namespace ?? '',
          name: object.metadata.name,
          resourceVersion: object.metadata.resourceVersion,
          seenAt: lastSeen(object),
        }),
        keysOf: () => [],
      })
      enqueue('sweep')
      return async (_key, signal) => {
        const limit = clock.now() - ttlMs
        const expired = [...events.list()].filter(({ seenAt }) => seenAt <= limit)
        await forEachAtOnce(expired, (known) => remove(known, signal))
        return { againAfterMs: Math.min(ttlMs / 4, maxSweepIntervalMs) }
      }
    },
  }
}
