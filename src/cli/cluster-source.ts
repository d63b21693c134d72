import type { ClusterView, OptionTable } from '../core/index.ts'
import { dataDirectory } from './data-directory.ts'
import type { Io } from './io.ts'
import { pluginHostOf } from './plugin-host.ts'
import { dataDirectoryOption } from './shared-options.ts'

/** Which cluster a command is about: that of a data directory, or any that a kubeconfig names. */
export const clusterSourceOptions = {
  kubeconfig: {
    type: 'path',
    describe: 'kubeconfig of the cluster, which may be any Kubernetes cluster',
    group: 'Cluster',
    placeholder: 'FILE',
    defaultText: 'that of the administrator in --data-dir',
  },
  context: {
    type: 'string',
    describe: 'context of that kubeconfig',
    group: 'Cluster',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  ...dataDirectoryOption,
} as const satisfies OptionTable

/** The values of those options. */
export interface ClusterSourceValues {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly dataDir?: string | undefined
}

/** Opens the cluster that the options name. */
export async function openClusterSource(
  { kubeconfig, context, dataDir }: ClusterSourceValues,
  io: Io,
): Promise<ClusterView> {
  if (kubeconfig === undefined && context === undefined) {
    const { openClusterAccess } = await import('./cluster-access.ts')
    return (await openClusterAccess(dataDirectory(dataDir, io))).view
  }
  const { createKubeClient, RemoteClusterView, transportFromKubeconfig } = await import(
    '../client/index.ts'
  )
  const { loadContext } = await import('../kubeconfig/index.ts')
  const sources = {
    explicitPath: kubeconfig,
    kubeconfig: io.env['KUBECONFIG'],
    home: io.homeDirectory,
  }
  const { warnings, ...found } = await loadContext(sources, context)
  for (const warning of warnings) io.stderr(`warning: ${warning}\n`)
  const reach = { plugins: await pluginHostOf(io), proxyEnv: io.env }
  const transport = await transportFromKubeconfig(found, reach)
  return new RemoteClusterView(createKubeClient({ transport }))
}
