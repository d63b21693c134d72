import { join } from 'node:path'
import { type DataDirectory, dataDirectoryAt } from '../apiserver/data-directory/index.ts'
import { serverOptions } from '../apiserver/options/index.ts'
import type { ClusterView, OptionTable } from '../core/index.ts'
import type { PluginHost } from '../credentials/index.ts'
import type { Io } from './io.ts'

/** The path of the data directory: the one given, or the usual one of this user. */
export function dataDirectoryPath(given: string | undefined, io: Io): string {
  if (given !== undefined) return given
  if (io.isRoot) return '/var/lib/sallyport'
  return join(io.env['XDG_DATA_HOME'] || join(io.homeDirectory, '.local', 'share'), 'sallyport')
}

/** The data directory and where its parts lie. */
export const dataDirectory = (given: string | undefined, io: Io): DataDirectory =>
  dataDirectoryAt(dataDirectoryPath(given, io))

/** Runs exec plugins of a command's user, under the rules of the user's kuberc, and ends them with the command. */
export async function pluginHostOf(io: Io): Promise<PluginHost> {
  const { nodePluginHost, readPluginPolicy } = await import('../credentials/exec/index.ts')
  const { loadKuberc } = await import('../kubeconfig/index.ts')
  const preferences = await loadKuberc({ kuberc: io.env['KUBERC'], home: io.homeDirectory })
  const policy = readPluginPolicy(preferences)
  return nodePluginHost({ env: io.env, interrupt: io.drain, ...(policy && { policy }) })
}

/** The option that every command has. */
export const outputOption = {
  output: {
    type: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    describe: 'form of the result on standard output',
    group: 'Output',
  },
} as const satisfies OptionTable

/** Where the server keeps everything, for commands that look for it there. */
export const dataDirectoryOption = {
  'data-dir': { ...serverOptions['data-dir'], group: 'Cluster' },
} as const satisfies OptionTable

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
