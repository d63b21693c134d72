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

/** How long a Pod stays whose Lease does not say otherwise. */
const defaultLeaseMs = 40_000
const longestLeaseMs = 300_000

interface Sign {
  readonly machine: string | undefined
  readonly uid: string | undefined
  /** What makes it another sign of life than the one before. */
  readonly version: string | undefined
  /** When this process saw it, by its own clock: those of the machines may be wrong. */
  readonly seenAt: number
  readonly leaseMs: number
}

const keyOf = ({ namespace = '', name }: Key): string => `${namespace}/${name}`

/** Deletes the Pods of workloads that have not renewed their Lease: whoever ran them was killed or cut off. */
export function createStaleWorkloads(view: ClusterView, clock: Clock): Controller {
  const pods = new Map<string, Sign>()
  const leases = new Map<string, Sign>()
  const watchOf = (kind: Watch['kind'], signs: Map<string, Sign>): Watch => ({
    kind,
    query: { labelSelector: workloadMark },
    put: (object) => {
      const key = keyOf(object.metadata)
      const sign = signOf(object, clock.monotonic())
      const known = signs.get(key)
      // A list tells again what is known; only a change is a sign of life.
      const isNew = known?.version !== sign.version
      if (isNew) signs.set(key, sign)
      return isNew ? [key] : []
    },
    remove: ({ namespace = '', name }) => {
      signs.delete(keyOf({ namespace, name }))
      return []
    },
    known: () => [...signs.keys()].map(keyFrom),
  })
  return {
    name: 'stale-workloads',
    watches: [watchOf(wellKnownKinds.pod, pods), watchOf(wellKnownKinds.lease, leases)],
    reconcile: async (key, signal) => {
      const pod = pods.get(key)
      if (pod === undefined) return undefined
      const lease = leases.get(key)
      const { leaseMs, seenAt } = lease && lease.machine === pod.machine ? lease : pod
      const leftMs = seenAt + leaseMs - clock.monotonic()
      if (leftMs > 0) return { againAfterMs: leftMs }
      await remove(view, keyFrom(key), pod.uid, signal)
      return undefined
    },
  }
}

function keyFrom(key: string): { namespace: string; name: string } {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}

function signOf(object: KubeObject, seenAt: number): Sign {
  const { uid, resourceVersion } = object.metadata
  // Anybody may touch a Pod's labels; only its machine renews its Lease.
  const version = object.kind === wellKnownKinds.lease.kind ? resourceVersion : uid
  const spec = object['spec']
  const seconds = isRecord(spec) ? spec['leaseDurationSeconds'] : undefined
  const leaseMs = typeof seconds === 'number' ? seconds * 1_000 : defaultLeaseMs
  return {
    machine: machineOf(object),
    uid,
    version,
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
