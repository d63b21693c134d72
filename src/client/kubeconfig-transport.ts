import type { ContextHost } from '../credentials/index.ts'
import { createTransport, type Transport } from '../credentials/transport/index.ts'
import type { ResolvedContext } from '../kubeconfig/index.ts'

/** The cluster and the user that a context names, and what else is known of it. */
export type ClusterContext = Pick<ResolvedContext, 'cluster' | 'user'> & Partial<ResolvedContext>

/**
 * A transport for a context of a kubeconfig, with everything that it says: plugins, files, proxies, addresses.
 * Plugins run under this process unless a host is given. Nothing is read or run before the first request.
 */
export async function transportFromKubeconfig(
  context: ClusterContext,
  host?: ContextHost,
): Promise<Transport> {
  // Loaded here, so that a client without a kubeconfig does not pay for plugins and files.
  const { connectContext } = await import('../credentials/provider/index.ts')
  const connections = await connectContext(
    { ...nameless, ...context },
    host ?? (await thisProcess()),
  )
  const { credentials, tls } = connections.options
  return {
    ...createTransport(connections),
    destroy: () => {
      connections.destroy()
      credentials?.dispose()
      tls?.trust?.dispose()
    },
  }
}

const nameless = { contextName: '', clusterName: '', userName: '', namespace: 'default' }

async function thisProcess(): Promise<ContextHost> {
  const { nodePluginHost } = await import('../credentials/exec/index.ts')
  const plugins = nodePluginHost()
  return { plugins, proxyEnv: plugins.env }
}
