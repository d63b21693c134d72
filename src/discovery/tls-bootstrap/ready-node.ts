import { type ClusterView, isRecord, wellKnownKinds } from '../../core/index.ts'

/** Within which a node that is alive has shown it; Kubernetes' own patience. */
const graceMs = 40_000

/**
 * Whether a node of this name is in service: it says so itself, and if it has a Lease, has renewed it.
 * Nobody here marks nodes that fell silent, so a node without a Lease is believed.
 */
export async function isReadyNode(
  view: ClusterView,
  name: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const node = await view.get(wellKnownKinds.node, { name }, signal)
  if (!node || !saysReady(node['status'])) return false
  const key = { namespace: 'kube-node-lease', name }
  const lease = await view.get(wellKnownKinds.lease, key, signal)
  const renewedAt = renewalOf(lease?.['spec'])
  return renewedAt === undefined || renewedAt + graceMs > nowMs
}

function saysReady(status: unknown): boolean {
  const conditions = isRecord(status) ? status['conditions'] : undefined
  return (
    Array.isArray(conditions) &&
    conditions.some(
      (each) => isRecord(each) && each['type'] === 'Ready' && each['status'] === 'True',
    )
  )
}

function renewalOf(spec: unknown): number | undefined {
  const text = isRecord(spec) ? spec['renewTime'] : undefined
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
