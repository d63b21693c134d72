import { clusterAddresses, type ResolvedContext } from '../../kubeconfig/index.ts'
import { type CredentialHost, trustSourceFor } from '../sources/index.ts'
import { Connections, type ConnectionsOptions, type ProxyEnv } from '../transport/index.ts'
import { contextProvider } from './built-in-providers.ts'
import { impersonationHeaders } from './impersonation-headers.ts'
import type { AuthProvider, TransportTls } from './transport-config.ts'
import { draftTransport } from './transport-draft.ts'

/** What connections to the cluster of a context need of their host. */
export interface ContextHost extends CredentialHost {
  /** Providers that come before the credential of the context, and so win over it. */
  readonly providers?: readonly AuthProvider[]
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read from it; no proxy but the cluster's own if absent. */
  readonly proxyEnv?: ProxyEnv
}

/** Connections to the cluster of a context, with everything that its kubeconfig says about them. */
export async function connectContext(
  context: ResolvedContext,
  host: ContextHost,
): Promise<Connections> {
  return new Connections(await contextConnectionOptions(context, host))
}

/** What connections to the cluster of a context are made of, for those who want to change something. */
export async function contextConnectionOptions(
  context: ResolvedContext,
  host: ContextHost,
): Promise<ConnectionsOptions> {
  const { cluster, user } = context
  const tls = tlsOf(context, host)
  const providers = [...(host.providers ?? []), contextProvider(context, host)]
  const draft = await draftTransport({ server: cluster.server, tls }, providers)
  const { credentials } = draft
  return {
    servers: clusterAddresses(cluster),
    tls,
    wrappers: draft.wrappers,
    ...(credentials && { credentials }),
    ...(host.allowHttp && { allowHttp: true }),
    ...(user.impersonate && { headers: impersonationHeaders(user.impersonate) }),
    ...(cluster.proxyUrl !== undefined && { proxyUrl: cluster.proxyUrl }),
    ...(host.proxyEnv && { env: host.proxyEnv }),
    ...(cluster.disableCompression && { disableCompression: true }),
  }
}

function tlsOf({ cluster }: ResolvedContext, host: ContextHost): TransportTls {
  const trust = trustSourceFor(cluster, host.plugins.clock)
  return {
    ...(trust && { trust }),
    ...(cluster.tlsServerName !== undefined && { serverName: cluster.tlsServerName }),
    ...(cluster.insecureSkipTlsVerify && { insecureSkipVerify: true }),
  }
}
