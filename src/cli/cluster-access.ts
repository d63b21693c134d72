import type { DataDirectory } from '../apiserver/data-directory/index.ts'
import {
  createKubeClient,
  type KubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../client/index.ts'
import { type ClusterView, CommandFailed, readTrustedFile, systemErrorCode } from '../core/index.ts'
import { parseKubeconfig, resolveContext } from '../kubeconfig/index.ts'

/** The cluster of a data directory, through its running server. */
export interface ClusterAccess {
  readonly view: ClusterView
  readonly client: KubeClient
  /** The URL that the administrator's kubeconfig names. */
  readonly server: string
}

async function readAdminKubeconfig(directory: DataDirectory): Promise<string> {
  const { adminKubeconfig: path } = directory
  try {
    return await readTrustedFile(path, 'private')
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause
    const code = systemErrorCode(cause)
    throw new CommandFailed(
      'NO_CLUSTER',
      code === 'ENOENT'
        ? `there is no cluster in ${directory.path}`
        : `cannot read ${path}: ${code}`,
      { hint: 'start one with `sallyport up`, or name its directory with --data-dir', cause },
    )
  }
}

/** Opens the cluster of a data directory as its administrator. */
export async function openClusterAccess(directory: DataDirectory): Promise<ClusterAccess> {
  const text = await readAdminKubeconfig(directory)
  const config = await parseKubeconfig(text, directory.adminKubeconfig)
  const { cluster, user } = resolveContext(config)
  const client = createKubeClient({ transport: await transportFromKubeconfig({ cluster, user }) })
  return { view: new RemoteClusterView(client), client, server: cluster.server }
}
