import type { Clock } from '../../core/index.ts'
import { type Cluster, changeCluster, type ResolvedContext } from '../../kubeconfig/index.ts'
import { type Refreshed, type RefreshOrder, refreshLocation } from './refresh-location.ts'

/** Where a refreshed entry is kept. */
export interface KeptEntry {
  /** The kubeconfig that has the cluster's entry. */
  readonly file: string
  readonly clusterName: string
  readonly clock: Clock
}

/** Refreshes a cluster's entry and writes it back, if the file still has the entry that was refreshed. */
export async function refreshKubeconfig(
  order: RefreshOrder & { readonly entry: KeptEntry },
): Promise<Refreshed & { readonly written: boolean }> {
  const { entry, signal, cluster } = order
  const refreshed = await refreshLocation(order)
  if (!refreshed.changed) return { ...refreshed, written: false }
  const written = await changeCluster(
    { path: entry.file, name: entry.clusterName },
    // Paths are relative there and absolute here; whatever else differs is somebody's change.
    (found) => (isSameEntry(found, cluster) ? withoutFile(found, refreshed.cluster) : undefined),
    { clock: entry.clock, signal },
  )
  return { ...refreshed, written }
}

/** The cluster's entry of a context, if it came from a file. */
export function entryOf(context: ResolvedContext, clock: Clock): KeptEntry | undefined {
  const { clusterFile: file, clusterName } = context
  return file === undefined ? undefined : { file, clusterName, clock }
}

const isSameEntry = (a: Cluster, b: Cluster): boolean =>
  a.server === b.server && a.certificateAuthorityData === b.certificateAuthorityData

function withoutFile(found: Cluster, next: Cluster): Cluster {
  const { certificateAuthority: _, ...rest } = next
  const { certificateAuthority: file } = found
  const keepsFile = next.certificateAuthorityData === undefined && file !== undefined
  return keepsFile ? { ...rest, certificateAuthority: file } : rest
}
