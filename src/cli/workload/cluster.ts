import type { Transport } from '../../client/index.ts'
import type { Logger } from '../../core/index.ts'
import type { ContextHost } from '../../credentials/index.ts'
import {
  type ClusterLocation,
  clusterLocation,
  type ResolvedContext,
} from '../../kubeconfig/index.ts'

/** The way to the cluster of a workload. */
export interface WorkloadCluster {
  readonly transport: Transport
  /** Calls back with the first of the cluster's addresses when it has others. */
  readonly onMoved: (listener: (server: URL) => void) => void
}

/** Opens the way to a context's cluster. One whose id is known is followed; of any other nobody could tell whether it is the same. */
export async function openWorkloadCluster(
  context: ResolvedContext,
  host: ContextHost,
  log: Logger,
): Promise<WorkloadCluster> {
  if (clusterLocation(context.cluster).clusterId === undefined) {
    const { transportFromKubeconfig } = await import('../../client/index.ts')
    return { transport: await transportFromKubeconfig(context, host), onMoved: () => {} }
  }
  const listeners: ((server: URL) => void)[] = []
  const onChange = ({ addresses }: ClusterLocation): void => {
    log.info({ addresses }, 'the cluster says where it is now')
    for (const tell of listeners) tell(new URL(addresses[0]))
  }
  const { FollowedCluster } = await import('../../bootstrap/refresh/index.ts')
  const { transport } = await FollowedCluster.open(context, { host, onChange, log })
  return { transport, onMoved: (listener) => void listeners.push(listener) }
}
