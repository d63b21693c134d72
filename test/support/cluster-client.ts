import { readFile } from 'node:fs/promises'
import {
  createKubeClient,
  type KubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../src/client/index.ts'
import type { ClusterView } from '../../src/core/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'

/** A client and a view for the current context of a kubeconfig file. */
export async function openCluster(
  path: string,
): Promise<{ readonly view: ClusterView; readonly client: KubeClient }> {
  const config = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const { cluster, user } = resolveContext(config)
  const client = createKubeClient({ transport: await transportFromKubeconfig({ cluster, user }) })
  return { client, view: new RemoteClusterView(client) }
}
