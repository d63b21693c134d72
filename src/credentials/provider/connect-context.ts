import {
  clusterAddresses,
  type Impersonation,
  type ResolvedContext,
} from '../../kubeconfig/index.ts'
import type { ClusterRequest } from '../credential.ts'
import { type CredentialHost, trustSourceFor } from '../sources/index.ts'
import { Connections, type ConnectionsOptions, type ProxyEnv } from '../transport/index.ts'
import type { AuthProvider, TransportTls } from '../transport/types.ts'
import { contextProvider, draftTransport } from './providers.ts'

/** The headers that ask the server to treat a request as somebody else's. */
export function impersonationHeaders(impersonation: Impersonation): ClusterRequest['headers'] {
  const { username, uid, groups = [], extra = {} } = impersonation
  const extras = Object.entries(extra).map(
    ([key, values]) => [`impersonate-extra-${escapeKey(key)}`, values] as const,
  )
  return {
    ...(username !== undefined && { 'impersonate-user': username }),
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': groups }),
    ...Object.fromEntries(extras),
  }
}

/** A name may hold what a header's name cannot: the server undoes percent-encoding. */
const escapeKey = (key: string): string =>
  key.toLowerCase().replaceAll(/[^!#$&'*+\-.^_`|~0-9a-z]/g, (character) => encodeBytes(character))

const encodeBytes = (character: string): string =>
  [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')

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
