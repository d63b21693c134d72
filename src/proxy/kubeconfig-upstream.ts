import { contextConnectionOptions, type PluginHost } from '../credentials/index.ts'
import { Connections, type ProxyEnv } from '../credentials/transport/index.ts'
import type { ResolvedContext } from '../kubeconfig/index.ts'
import { upstreamOn } from './transport-upstream.ts'
import type { Upstream } from './upstream.ts'

/** Browsers open many streams at once, and none of them may wait for another. */
const maxConnections = 1_000

/** How the cluster of a context is reached. */
export interface KubeconfigUpstreamOptions {
  readonly context: ResolvedContext
  /** Whether the path in the server's address goes before every path. */
  readonly appendServerPath: boolean
  /** Runs the context's exec plugin, if it has one. */
  readonly plugins: PluginHost
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read from it. */
  readonly env: ProxyEnv
}

/** The API server of a kubeconfig's context, reached with the context's credentials. */
export async function upstreamFromKubeconfig(
  options: KubeconfigUpstreamOptions,
): Promise<Upstream> {
  const { context, appendServerPath, plugins, env } = options
  const usual = await contextConnectionOptions(context, { plugins, proxyEnv: env })
  const { servers, credentials, tls } = usual
  const addresses = typeof servers === 'string' ? [servers] : servers
  const connections = new Connections({
    ...usual,
    servers: appendServerPath ? addresses : addresses.map((server) => new URL(server).origin),
    // Streams of different clients must not share one window.
    http: '1.1',
    maxConnections,
  })
  const upstream = upstreamOn(connections)
  return {
    ...upstream,
    destroy: () => {
      upstream.destroy()
      credentials?.dispose()
      tls?.trust?.dispose()
    },
  }
}
