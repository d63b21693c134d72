import type { PluginHost } from '../credentials/index.ts'
import type { Io } from './io.ts'

/** Runs exec plugins of a command's user, under the rules of the user's kuberc. */
export async function pluginHostOf(io: Io): Promise<PluginHost> {
  const { nodePluginHost, readPluginPolicy } = await import('../credentials/exec/index.ts')
  const { loadKuberc } = await import('../kubeconfig/index.ts')
  const preferences = await loadKuberc({ kuberc: io.env['KUBERC'], home: io.homeDirectory })
  const policy = readPluginPolicy(preferences)
  return nodePluginHost({ env: io.env, ...(policy && { policy }) })
}
