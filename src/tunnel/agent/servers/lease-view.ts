import { readFile } from 'node:fs/promises'
import {
  createKubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../../client/index.ts'
import type { ClusterView } from '../../../core/index.ts'
import { inClusterContext, parseKubeconfig, resolveContext } from '../../../kubeconfig/index.ts'

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
