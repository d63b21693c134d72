import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CommandFailed, replaceFile, type Secret, systemErrorCode } from '../core/index.ts'
import { present } from './field-reader.ts'
import type {
  AuthProviderConfig,
  Cluster,
  Context,
  ExecConfig,
  Extensions,
  Kubeconfig,
  KubeconfigUser,
} from './kubeconfig.ts'

/** A kubeconfig as YAML text, credentials included. */
export async function renderKubeconfig(config: Kubeconfig): Promise<string> {
  const { stringify } = await import('yaml')
  const plain = present({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': config.currentContext,
    clusters: renderNamed(config.clusters, 'cluster', renderCluster),
    contexts: renderNamed(config.contexts, 'context', renderContext),
    users: renderNamed(config.users, 'user', renderUser),
    extensions: renderExtensions(config.extensions),
    ...config.unknown,
  })
  // kubectl reads YAML 1.1, where a bare `on` or `n` is a boolean: so write it that way.
  return stringify(plain, { version: '1.1', lineWidth: 0 })
}

function renderNamed<T>(
  entries: ReadonlyMap<string, T>,
  entryName: string,
  render: (entry: T) => object,
): object[] {
  return [...entries].map(([name, entry]) => ({ name, [entryName]: render(entry) }))
}

/** A cluster entry as a kubeconfig has it. */
export function renderCluster(cluster: Cluster): object {
  return present({
    server: cluster.server,
    'tls-server-name': cluster.tlsServerName,
    'insecure-skip-tls-verify': cluster.insecureSkipTlsVerify,
    'certificate-authority': cluster.certificateAuthority,
    'certificate-authority-data': base64(cluster.certificateAuthorityData),
    'proxy-url': cluster.proxyUrl,
    'disable-compression': cluster.disableCompression,
    extensions: renderExtensions(cluster.extensions),
    ...cluster.unknown,
  })
}

function renderContext(context: Context): object {
  return present({
    cluster: context.cluster,
    user: context.user,
    namespace: context.namespace,
    extensions: renderExtensions(context.extensions),
    ...context.unknown,
  })
}

function renderUser(user: KubeconfigUser): object {
  return present({
    'client-certificate': user.clientCertificate,
    'client-certificate-data': base64(user.clientCertificateData),
    'client-key': user.clientKey,
    'client-key-data': base64(user.clientKeyData?.reveal()),
    token: user.token?.reveal(),
    tokenFile: user.tokenFile,
    username: user.username,
    password: user.password?.reveal(),
    as: user.impersonate?.username,
    'as-uid': user.impersonate?.uid,
    'as-groups': user.impersonate?.groups,
    'as-user-extra': user.impersonate?.extra,
    'auth-provider': user.authProvider && renderAuthProvider(user.authProvider),
    exec: user.exec && renderExec(user.exec),
    extensions: renderExtensions(user.extensions),
    ...user.unknown,
  })
}

function renderAuthProvider(provider: AuthProviderConfig): object {
  const entries = provider.config && Object.entries(provider.config)
  return present({
    name: provider.name,
    config: entries && Object.fromEntries(entries.map(([name, value]) => [name, value.reveal()])),
    ...provider.unknown,
  })
}

function renderExec(exec: ExecConfig): object {
  return present({
    apiVersion: exec.apiVersion,
    command: exec.command,
    args: exec.args,
    env: exec.env?.map(({ name, value }) => ({ name, value: value.reveal() })),
    installHint: exec.installHint,
    provideClusterInfo: exec.provideClusterInfo,
    interactiveMode: exec.interactiveMode,
    ...exec.unknown,
  })
}

const renderExtensions = (extensions: Extensions | undefined): object[] | undefined =>
  extensions && [...extensions].map(([name, extension]) => ({ name, extension }))

const base64 = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : Buffer.from(text).toString('base64')

/** Writes a kubeconfig with mode 0600 in one step; replaces an existing file unless it must be new. */
export async function writeKubeconfig(
  path: string,
  config: Kubeconfig,
  as: 'new' | 'any' = 'any',
): Promise<void> {
  await writeKubeconfigText(path, await renderKubeconfig(config), as)
}

/** Writes the text of a kubeconfig in the same way. */
export async function writeKubeconfigText(
  path: string,
  text: string,
  as: 'new' | 'any' = 'any',
): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, text, 0o600, as)
  } catch (cause) {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('KUBECONFIG_UNWRITABLE', `cannot write ${path}: ${why}`, {
      hint: 'choose a place where this user may write',
      cause,
    })
  }
}

/** How a user of a new kubeconfig proves who they are. */
export type NewCredential =
  | { readonly clientCertPem: string; readonly clientKeyPem: Secret }
  | { readonly token: Secret }

/** A kubeconfig with one cluster, one user and one context for them, and every file in it inline. */
export function makeKubeconfig(
  facts: {
    readonly clusterName: string
    readonly server: string
    readonly caPem: string
    readonly userName: string
    readonly namespace?: string
  } & NewCredential,
): Kubeconfig {
  const { clusterName, userName, namespace } = facts
  const contextName = `${userName}@${clusterName}`
  const user: KubeconfigUser =
    'token' in facts
      ? { token: facts.token }
      : { clientCertificateData: facts.clientCertPem, clientKeyData: facts.clientKeyPem }
  return {
    currentContext: contextName,
    clusters: new Map([
      [clusterName, { server: facts.server, certificateAuthorityData: facts.caPem }],
    ]),
    users: new Map([[userName, user]]),
    contexts: new Map([
      [
        contextName,
        { cluster: clusterName, user: userName, ...(namespace !== undefined && { namespace }) },
      ],
    ]),
  }
}
