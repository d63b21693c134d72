import { readFile } from 'node:fs/promises'
import { systemErrorCode } from '../../core/index.ts'
import type { Cluster } from '../../kubeconfig/index.ts'
import { CredentialError } from '../credential-error.ts'
import type { ExecClusterInfo } from './plugin-run.ts'

const extensionName = 'client.authentication.k8s.io/exec'

/** What plugins that ask for it are told about a cluster; a CA file is read, so that no path leaves. */
export async function execClusterInfo(cluster: Cluster): Promise<ExecClusterInfo> {
  const { tlsServerName, insecureSkipTlsVerify, proxyUrl, disableCompression } = cluster
  const certificateAuthorityData =
    cluster.certificateAuthorityData ?? (await readAuthority(cluster.certificateAuthority))
  const config = cluster.extensions?.get(extensionName)
  return {
    // What follows a question mark is not for requests, and kubectl drops it.
    server: cluster.server.replace(/\?.*$/s, ''),
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(insecureSkipTlsVerify !== undefined && { insecureSkipTlsVerify }),
    ...(certificateAuthorityData !== undefined && { certificateAuthorityData }),
    ...(proxyUrl !== undefined && { proxyUrl }),
    ...(disableCompression !== undefined && { disableCompression }),
    ...(config !== undefined && { config }),
  }
}

async function readAuthority(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown'
    throw new CredentialError(
      'CONFIG_INVALID',
      `cannot read ${path}, which the cluster names as its certificate-authority (${code})`,
      { cause },
    )
  }
}
