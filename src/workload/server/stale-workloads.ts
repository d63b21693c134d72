import type { Controller, Watch } from '../../api/index.ts'
import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type Key,
  type KubeObject,
  machineOf,
  wellKnownKinds,
  workloadMark,
} from '../../core/index.ts'

/** How long a Pod stays that no Lease speaks for. */
const defaultLeaseMs = 40_000
const longestLeaseMs = 300_000

/** A sign of life of a workload. */
interface Sign {
  readonly machine: string | undefined
  readonly uid: string | undefined
  /** When this process saw it, by its own clock: those of the machines may be wrong. */
  readonly seenAt: number
  readonly leaseMs: number
}

const keyOf = ({ namespace = '', name }: Key): string => `${namespace}/${name}`

function keyFrom(key: string): { namespace: string; name: string } {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}

/** Deletes the Pods of workloads that have not renewed their Lease: whoever ran them was killed or cut off. */
export function createStaleWorkloads(view: ClusterView, clock: Clock): Controller {
  const pods = new LifeSigns(wellKnownKinds.pod, clock)
  const leases = new LifeSigns(wellKnownKinds.lease, clock)
  return {
    name: 'stale-workloads',
    watches: [pods, leases],
    reconcile: async (key, signal) => {
      const pod = pods.last(key)
      if (pod === undefined || !pods.has(key)) {
        pods.forget(key)
        leases.forget(key)
        return undefined
      }
      const lease = leases.last(key)
      const isNewer = lease?.machine === pod.machine && (lease?.seenAt ?? 0) >= pod.seenAt
      const { leaseMs, seenAt } = lease && isNewer ? lease : pod
      const leftMs = seenAt + leaseMs - clock.monotonic()
      if (leftMs > 0) return { againAfterMs: leftMs }
      await remove(view, keyFrom(key), pod.uid, signal)
      return undefined
    },
  }
}

/** What was last seen of marked objects of one kind, also of those that are gone: whoever deletes a Lease ends nothing. */
class LifeSigns implements Watch {
  readonly kind: Watch['kind']
  readonly query = { labelSelector: workloadMark }
  readonly #clock: Clock
  readonly #signs = new Map<string, Sign>()
  /** The version of each object that is there; of a Pod its uid, since anybody may touch its labels. */
  readonly #present = new Map<string, string | undefined>()

  constructor(kind: Watch['kind'], clock: Clock) {
    this.kind = kind
    this.#clock = clock
  }

  put(object: KubeObject): string[] {
    const key = keyOf(object.metadata)
    const { uid, resourceVersion } = object.metadata
    const version = this.kind === wellKnownKinds.lease ? resourceVersion : uid
    // A list tells again what is known; only a change is a sign of life.
    if (this.has(key) && this.#present.get(key) === version) return []
    this.#present.set(key, version)
    this.#signs.set(key, signOf(object, this.#clock.monotonic()))
    return [key]
  }

  remove(object: Key): string[] {
    const key = keyOf(object)
    this.#present.delete(key)
    return [key]
  }

  *known(): Iterable<Key> {
    for (const key of this.#present.keys()) yield keyFrom(key)
  }

  has(key: string): boolean {
    return this.#present.has(key)
  }

  last(key: string): Sign | undefined {
    return this.#signs.get(key)
  }

  forget(key: string): void {
    if (!this.has(key)) this.#signs.delete(key)
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
    leaseMs: Math.min(leaseMs, longestLeaseMs),
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
    // Its workload has come back, or somebody else was faster.
    if (!hasReason(error, 'NotFound', 'Conflict')) throw error
  }
}
