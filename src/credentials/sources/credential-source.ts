import { Secret } from '../../core/index.ts'
import type { KubeconfigUser, ResolvedContext } from '../../kubeconfig/index.ts'
import type { CredentialSource } from '../credential.ts'
import { CredentialError } from '../errors.ts'
import { combinedSource } from './combined-source.ts'
import { type ExecSourceHost, execSource } from './exec-source.ts'
import { type CredentialExplanation, type CredentialKind, explainChoice } from './explain.ts'
import { certificateFileSource, type FileSourceHost, tokenFileSource } from './file-source.ts'
import { oidcSource } from './oidc-source.ts'
import { staticSource } from './source.ts'

/** What took the place of the providers that were built into kubectl once. */
const replacements: Readonly<Record<string, string>> = {
  gcp: 'the plugin gke-gcloud-auth-plugin: install it and run `gcloud container clusters get-credentials`',
  azure:
    'the plugin kubelogin (github.com/Azure/kubelogin): install it and run `kubelogin convert-kubeconfig`',
  openstack: 'the plugin client-keystone-auth of cloud-provider-openstack',
}

/** Refuses an `auth-provider` that is gone or was never known. */
export function refusedProvider(name: string): CredentialError {
  const replacement = Object.hasOwn(replacements, name) ? replacements[name] : undefined
  if (replacement !== undefined) {
    return new CredentialError(
      'UNSUPPORTED',
      `auth-provider ${name} was removed from Kubernetes: exec plugins took its place`,
      { hint: `use ${replacement}` },
    )
  }
  return new CredentialError(
    'UNSUPPORTED',
    `there is no auth-provider ${JSON.stringify(name.slice(0, 80))}`,
    { hint: 'use an exec plugin instead; of the old providers only oidc is left' },
  )
}

/** What credentials of every kind need of their host. */
export interface CredentialHost extends ExecSourceHost {
  /** Send credentials to an http:// server too, where anybody on the way can read them. */
  readonly allowHttp?: boolean
}

/** The credential of a context. */
export interface CredentialChoice {
  /** Undefined if the context has none, or none that may be used. */
  readonly source: CredentialSource | undefined
  readonly why: CredentialExplanation
}

/** Chooses the credential of a context by kubectl's rules. Nothing is read or run before it is asked for. */
export function credentialSourceFor(
  context: ResolvedContext,
  host: CredentialHost,
): CredentialChoice {
  const why = explainChoice(context, host.allowHttp)
  const provider = context.user.authProvider
  // An unknown provider is refused even beside a token: the file says something that we cannot do.
  if (provider && provider.name !== 'oidc') throw refusedProvider(provider.name)
  const kinds = why.used.map(({ kind }) => kind)
  const tls = kinds.includes('client-certificate')
    ? certificateSource(context.user, filesHost(host))
    : undefined
  const [kind] = kinds.filter((each) => each !== 'client-certificate')
  const header = kind && sourceOf(kind, context, host)
  return { source: header && tls ? combinedSource(header, tls) : (header ?? tls), why }
}

const filesHost = ({ plugins, observer }: CredentialHost): FileSourceHost => ({
  clock: plugins.clock,
  ...(observer && { observer }),
})

function sourceOf(
  kind: Exclude<CredentialKind, 'client-certificate'>,
  context: ResolvedContext,
  host: CredentialHost,
): CredentialSource | undefined {
  const { cluster, user } = context
  switch (kind) {
    case 'token-file':
      return user.tokenFile === undefined
        ? undefined
        : tokenFileSource(user.tokenFile, filesHost(host), user.token)
    case 'token':
      return user.token && staticSource({ token: user.token })
    case 'basic':
      return staticSource({
        basic: { username: user.username ?? '', password: user.password ?? new Secret('') },
      })
    case 'exec':
      return user.exec && execSource(user.exec, cluster, host)
    case 'auth-provider':
      return user.authProvider && providedSource(user.authProvider, context, host)
  }
}

function providedSource(
  provider: NonNullable<KubeconfigUser['authProvider']>,
  { cluster, userName, userFile }: ResolvedContext,
  host: CredentialHost,
): CredentialSource {
  const user = { name: userName, ...(userFile !== undefined && { file: userFile }) }
  return oidcSource(
    provider,
    { cluster, user },
    {
      clock: host.plugins.clock,
      ...(host.observer && { observer: host.observer }),
      ...(host.registry && { registry: host.registry }),
      ...(host.random && { random: host.random }),
    },
  )
}

function certificateSource(
  user: KubeconfigUser,
  host: FileSourceHost,
): CredentialSource | undefined {
  const { clientCertificate, clientCertificateData, clientKey, clientKeyData } = user
  if (clientCertificateData !== undefined && clientKeyData) {
    return staticSource({
      clientCertificate: { certPem: clientCertificateData, keyPem: clientKeyData },
    })
  }
  const cert =
    clientCertificateData === undefined ? toPath(clientCertificate) : { pem: clientCertificateData }
  const key = clientKeyData ? { pem: clientKeyData } : toPath(clientKey)
  return cert && key && certificateFileSource({ cert, key }, host)
}

const toPath = (path: string | undefined): { path: string } | undefined =>
  path === undefined ? undefined : { path }
