import { isRecord } from '../../core/index.ts'
import type { Cluster } from '../../kubeconfig/index.ts'
import type { Refusal } from '../credential.ts'
import { readCredentialFile } from '../credential-file.ts'
import { type ExecClusterInfo, type PluginRun, v1alpha1 } from './plugin.ts'

/** What the plugin finds in `KUBERNETES_EXEC_INFO`, byte for byte as kubectl writes it. */
export function renderExecInfo(
  { exec, cluster, refusal }: PluginRun,
  interactive: boolean,
  dialect: 'shipped' | 'seed' = 'shipped',
): string {
  const { apiVersion } = exec
  if (apiVersion !== v1alpha1) {
    const told = exec.provideClusterInfo && cluster ? { cluster: clusterFields(cluster) } : {}
    return goJson({ kind: 'ExecCredential', apiVersion, spec: { ...told, interactive } })
  }
  // The first version alone tells why the plugin is called, and leaves out what is empty.
  const info = {
    ...(refusal && { response: responseFields(refusal, dialect) }),
    ...(interactive && { interactive }),
  }
  return goJson(
    dialect === 'seed'
      ? { kind: 'ExecInfo', apiVersion, ...info }
      : { kind: 'ExecCredential', apiVersion, spec: info },
  )
}

function clusterFields(cluster: ExecClusterInfo): Record<string, unknown> {
  const { tlsServerName, certificateAuthorityData, proxyUrl, config } = cluster
  return {
    server: cluster.server,
    ...(tlsServerName && { 'tls-server-name': tlsServerName }),
    ...(cluster.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
    ...(certificateAuthorityData && {
      'certificate-authority-data': Buffer.from(certificateAuthorityData).toString('base64'),
    }),
    ...(proxyUrl && { 'proxy-url': proxyUrl }),
    ...(cluster.disableCompression && { 'disable-compression': true }),
    config: sorted(config ?? null), // kubectl never leaves it out
  }
}

function responseFields(
  { status, headers }: Refusal,
  dialect: 'shipped' | 'seed',
): Record<string, unknown> {
  const named = Object.entries(headers).map(([name, values]) => [headerName(name, dialect), values])
  return {
    ...(named.length > 0 && { header: Object.fromEntries(named) as unknown }),
    ...(status !== 0 && { code: status }),
  }
}

function headerName(name: string, dialect: 'shipped' | 'seed'): string {
  // The proposal's own sample writes this one so; Go makes it Www-Authenticate.
  if (dialect === 'seed' && name === 'www-authenticate') return 'WWW-Authenticate'
  return name.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase())
}

/** Go has read the extension through a map, whose keys it writes in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  const names = Object.keys(value).toSorted()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]))
}

const escapedByGo = /[<>&\u2028\u2029]/g

function goJson(value: object): string {
  const escape = (character: string): string =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${JSON.stringify(value).replace(escapedByGo, escape)}\n`
}

const extensionName = 'client.authentication.k8s.io/exec'

/** What plugins that ask for it are told about a cluster; a CA file is read, so that no path leaves. */
export async function execClusterInfo(cluster: Cluster): Promise<ExecClusterInfo> {
  const { tlsServerName, insecureSkipTlsVerify, proxyUrl, disableCompression } = cluster
  const { certificateAuthority: path } = cluster
  const certificateAuthorityData =
    cluster.certificateAuthorityData ??
    (path === undefined ? undefined : await readCredentialFile(path))
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
