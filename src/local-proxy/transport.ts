import type { Logger } from '../core/index.ts'
import { contextConnectionOptions, type PluginHost } from '../credentials/index.ts'
import {
  Connections,
  createTransport,
  type ProxyEnv,
  requestUpgrade,
  type Transport,
  type UpgradeOutcome,
  type UpgradeRequest,
} from '../credentials/transport/index.ts'
import { clusterLocation, type ResolvedContext } from '../kubeconfig/index.ts'

/** The API server behind connections that prove who the user is. */
export interface ApiTransport extends Transport {
  /** Requests another protocol. */
  upgrade(request: UpgradeRequest): Promise<UpgradeOutcome>
}

/** The transport of these connections. */
export function transportOn(connections: Connections): ApiTransport {
  const transport = createTransport(connections)
  return {
    server: connections.server,
    send: (request) => transport.send(request),
    upgrade: (request) => requestUpgrade(connections, request),
    destroy: () => transport.destroy(),
  }
}

/** Browsers open many streams at once, and none of them may wait for another. */
const maxConnections = 1_000

/** How the cluster of a context is reached. */
export interface KubeconfigTransportOptions {
  readonly context: ResolvedContext
  /** Whether the path in the server's address goes before every path. */
  readonly appendServerPath: boolean
  /** Runs the context's exec plugin, if it has one. */
  readonly plugins: PluginHost
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read from it. */
  readonly env: ProxyEnv
  readonly log: Logger
  /** How often a cluster that is followed is asked where it is; 10 minutes unless given. */
  readonly everyMs?: number
}

/**
 * The API server of a kubeconfig's context, reached with the context's credentials. A cluster whose id is
 * known is followed where it goes; of any other nobody could tell whether it is still the same.
 */
export const transportFromKubeconfig = (
  options: KubeconfigTransportOptions,
): Promise<ApiTransport> =>
  clusterLocation(options.context.cluster).clusterId === undefined
    ? fixedTransport(options)
    : followedTransport(options)

const originOf = (address: string): string => new URL(address).origin

async function followedTransport(options: KubeconfigTransportOptions): Promise<ApiTransport> {
  const { context, appendServerPath, plugins, env, log, everyMs } = options
  const { FollowedCluster } = await import('../bootstrap/refresh/index.ts')
  const cluster = await FollowedCluster.open(context, {
    host: { plugins, proxyEnv: env },
    connections: { http: '1.1', maxConnections },
    ...(!appendServerPath && { dialled: originOf }),
    ...(everyMs !== undefined && { everyMs }),
    onChange: ({ addresses }) => log.info({ addresses }, 'the cluster says where it is now'),
    log,
  })
  return {
    server: cluster.transport.server,
    send: (request) => cluster.transport.send(request),
    upgrade: (request) => cluster.upgrade(request),
    destroy: () => cluster.close(),
  }
}

async function fixedTransport(options: KubeconfigTransportOptions): Promise<ApiTransport> {
  const { context, appendServerPath, plugins, env } = options
  const usual = await contextConnectionOptions(context, { plugins, proxyEnv: env })
  const { servers, credentials, tls } = usual
  const addresses = typeof servers === 'string' ? [servers] : servers
  const connections = new Connections({
    ...usual,
    servers: appendServerPath ? addresses : addresses.map(originOf),
    // Streams of different clients must not share one window.
    http: '1.1',
    maxConnections,
  })
  const transport = transportOn(connections)
  return {
    ...transport,
    destroy: () => {
      transport.destroy()
      credentials?.dispose()
      tls?.trust?.dispose()
    },
  }
}
