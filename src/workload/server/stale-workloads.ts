import type { Controller } from '../../api/index.ts'
import type { Change } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type KubeObject,
  machineOf,
  wellKnownKinds,
  workloadMark,
} from '../../core/index.ts'

/** How long a Pod without a Lease stays. */
const defaultLeaseMs = 40_000
const maxLeaseMs = 300_000

/** A sign of life of a workload. */
interface Sign {
  readonly machine: string | undefined
  readonly uid: string | undefined
  /** When this process saw it, by its own clock: those of the machines may be wrong. */
  readonly seenAt: number
  readonly leaseMs: number
}

function keyFrom(key: string): { namespace: string; name: string } {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}

/** Deletes the Pods of workloads that have not renewed their Lease: their process was killed or lost the cluster. */
export function createStaleWorkloads(view: ClusterView, clock: Clock): Controller {
  return {
    name: 'stale-workloads',
    start({ watch }) {
      const pods = new LifeSigns()
      const leases = new LifeSigns()
      const query = { labelSelector: workloadMark }
      const project = (object: KubeObject): Sign => signOf(object, clock.monotonic())
      // Users may change labels of a Pod, which is no sign of life.
      const equals = (a: Sign, b: Sign): boolean => a.uid === b.uid
      const keysOf = (signs: LifeSigns) => (change: Change<Sign>) => signs.record(change)
      watch({ kind: wellKnownKinds.pod, query, project, equals, keysOf: keysOf(pods) })
      watch({ kind: wellKnownKinds.lease, query, project, keysOf: keysOf(leases) })
      return async (key, signal) => {
        const pod = pods.last(key)
        if (pod === undefined || !pods.isPresent(key)) {
          pods.forget(key)
          leases.forget(key)
          return undefined
        }
        const lease = leases.last(key)
        const isNewer = lease?.machine === pod.machine && (lease?.seenAt ?? 0) >= pod.seenAt
        const { leaseMs, seenAt } = lease && isNewer ? lease : pod
        const remainingMs = seenAt + leaseMs - clock.monotonic()
        if (remainingMs > 0) return { againAfterMs: remainingMs }
        await remove(view, keyFrom(key), pod.uid, signal)
        return undefined
      }
    },
  }
}

/** The last sign of objects of one kind, also of those that are gone: the deletion of a Lease ends no workload. */
class LifeSigns {
  readonly #signs = new Map<string, Sign>()
  readonly #present = new Set<string>()

  record({ namespace, name, after }: Change<Sign>): string[] {
    const key = `${namespace}/${name}`
    if (after) {
      this.#signs.set(key, after)
      this.#present.add(key)
    } else this.#present.delete(key)
    return [key]
  }

  isPresent(key: string): boolean {
    return this.#present.has(key)
  }

  last(key: string): Sign | undefined {
    return this.#signs.get(key)
  }

  forget(key: string): void {
    if (!this.isPresent(key)) this.#signs.delete(key)
  }
}

function signOf(object: KubeObject, seenAt: number): Sign {
  const spec = object['spec']
  const seconds = isRecord(spec) ? spec['leaseDurationSeconds'] : undefined
  const leaseMs = typeof seconds === 'number' ? seconds * 1_000 : defaultLeaseMs
  return {
    machine: machineOf(object),
    uid: object.metadata.uid,
    seenAt,
    leaseMs: Math.min(leaseMs, maxLeaseMs),
  }
}

async function remove(
  view: ClusterView,
  key: { readonly namespace: string; readonly name: string },
  uid: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: key }
  try {
    await view.write('delete', object, uid === undefined ? {} : { uid }, signal)
  } catch (error) {
    // Its workload is back, or it is deleted already.
    if (!hasReason(error, 'NotFound', 'Conflict')) throw error
  }
}
