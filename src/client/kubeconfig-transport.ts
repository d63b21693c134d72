import { readFile } from 'node:fs/promises'
import { Secret, systemErrorCode } from '../core/index.ts'
import type { Cluster, Impersonation, KubeconfigUser } from '../kubeconfig/index.ts'
import { ClientConfigInvalid } from './client-errors.ts'
import { type HttpsTransportOptions, httpsTransport } from './https-transport.ts'
import type { RequestHeaders, Transport } from './transport.ts'

/** The cluster and the user that a context of a kubeconfig names. */
export interface ResolvedContext {
  readonly cluster: Cluster
  readonly user: KubeconfigUser
}

/** A transport for a context of a kubeconfig; refuses what it could only ignore. */
export async function transportFromKubeconfig(context: ResolvedContext): Promise<Transport> {
  const { cluster, user } = context
  const refused = cannotUse(context)
  if (refused) throw new ClientConfigInvalid(refused)
  const [caPem, clientCertPem, clientKeyPem] = await Promise.all([
    cluster.certificateAuthorityData ?? readOptional(cluster.certificateAuthority),
    user.clientCertificateData ?? readOptional(user.clientCertificate),
    user.clientKeyData ?? readSecret(user.clientKey),
  ])
  return httpsTransport({
    server: cluster.server,
    ...(caPem !== undefined && { caPem }),
    ...(clientCertPem !== undefined && { clientCertPem }),
    ...(clientKeyPem !== undefined && { clientKeyPem }),
    ...tokenOf(user),
    ...(cluster.tlsServerName !== undefined && { serverName: cluster.tlsServerName }),
    ...(cluster.insecureSkipTlsVerify && { insecureSkipTlsVerify: true }),
    ...(user.impersonate && { headers: impersonationHeaders(user.impersonate) }),
  })
}

function cannotUse({ cluster, user }: ResolvedContext): string | undefined {
  if (cluster.proxyUrl !== undefined) return 'proxy-url of a cluster is not supported'
  if (user.exec) return 'the user needs an exec plugin, which this transport does not run'
  if (user.authProvider) return 'auth-provider of a user is not supported: use exec instead'
  if (user.username !== undefined || user.password !== undefined)
    return 'username and password are not supported: Kubernetes takes them no more'
  return undefined
}

/** A token file goes before a token, and is read for every request since it may rotate. */
function tokenOf(user: KubeconfigUser): Pick<HttpsTransportOptions, 'token'> {
  const { token, tokenFile } = user
  if (tokenFile !== undefined) return { token: () => readSecret(tokenFile) }
  return token ? { token: () => token } : {}
}

function impersonationHeaders({ username, uid, groups, extra }: Impersonation): RequestHeaders {
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

const readSecret = async (path: string | undefined): Promise<Secret | undefined> => {
  const text = await readOptional(path)
  return text === undefined ? undefined : new Secret(text.trim())
}

async function readOptional(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown'
    throw new ClientConfigInvalid(`cannot read ${path}, which the kubeconfig names (${code})`, {
      cause,
    })
  }
}
