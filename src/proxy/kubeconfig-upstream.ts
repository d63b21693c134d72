import type { Clock } from '../core/index.ts'
import { credentialSourceFor, type PluginHost, trustSourceFor } from '../credentials/index.ts'
import { Connections, type ProxyEnv } from '../credentials/transport/index.ts'
import type { Impersonation, ResolvedContext } from '../kubeconfig/index.ts'
import { upstreamOn } from './transport-upstream.ts'
import type { HeaderRecord, Upstream } from './upstream.ts'

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
  readonly clock: Clock
}

/** The API server of a kubeconfig's context, reached with the context's credentials. */
export function upstreamFromKubeconfig(options: KubeconfigUpstreamOptions): Upstream {
  const { context, appendServerPath, plugins, env, clock } = options
  const { cluster, user } = context
  const { source } = credentialSourceFor(context, { plugins })
  const trust = trustSourceFor(cluster, clock)
  const connections = new Connections({
    servers: appendServerPath ? cluster.server : new URL(cluster.server).origin,
    tls: {
      ...(trust && { trust }),
      ...(cluster.tlsServerName !== undefined && { serverName: cluster.tlsServerName }),
      ...(cluster.insecureSkipTlsVerify && { insecureSkipVerify: true }),
    },
    ...(source && { credentials: source }),
    ...(user.impersonate && { headers: impersonationHeaders(user.impersonate) }),
    ...(cluster.proxyUrl !== undefined && { proxyUrl: cluster.proxyUrl }),
    ...(cluster.disableCompression && { disableCompression: true }),
    env,
    // Streams of different clients must not share a window.
    http: '1.1',
    maxConnections,
  })
  const upstream = upstreamOn(connections)
  return {
    ...upstream,
    destroy: () => {
      upstream.destroy()
      source?.dispose()
      trust?.dispose()
    },
  }
}

function impersonationHeaders({ username, uid, groups, extra }: Impersonation): HeaderRecord {
  const extras = Object.entries(extra ?? {}).map(
    ([key, values]) =>
      [`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`, values] as const,
  )
  return {
    ...(username !== undefined && { 'impersonate-user': username }),
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups && groups.length > 0 && { 'impersonate-group': groups }),
    ...Object.fromEntries(extras),
  }
}
