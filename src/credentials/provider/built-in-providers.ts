import type { ResolvedContext } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import {
  type CertificateFiles,
  type CredentialHost,
  certificateFileSource,
  credentialSourceFor,
  execSource,
  type FileSourceHost,
  oidcSource,
  staticSource,
  tokenFileSource,
} from '../sources/index.ts'
import type { AuthProvider } from './transport-config.ts'

/** What of a source counts; both unless said otherwise. */
export interface ProviderParts {
  readonly authorization?: boolean
  readonly clientCertificate?: boolean
}

/** A provider that offers a source. */
export function sourceProvider(source: CredentialSource, parts: ProviderParts = {}): AuthProvider {
  const { authorization = true, clientCertificate = true } = parts
  return {
    updateTransportConfig: (config) => {
      if (authorization) config.offerAuthorization(source)
      if (clientCertificate) config.offerClientCertificate(source)
    },
  }
}

/** A provider of a credential that never changes. */
export const staticProvider = (credential: Credential): AuthProvider =>
  sourceProvider(staticSource(credential), {
    authorization: credential.token !== undefined || credential.basic !== undefined,
    clientCertificate: credential.clientCertificate !== undefined,
  })

/** A provider of the token in a file. */
export const tokenFileProvider = (path: string, host: FileSourceHost): AuthProvider =>
  sourceProvider(tokenFileSource(path, host), { clientCertificate: false })

/** A provider of a client certificate in files. */
export const certificateFileProvider = (
  files: CertificateFiles,
  host: FileSourceHost,
): AuthProvider => sourceProvider(certificateFileSource(files, host), { authorization: false })

/** A provider of what a plugin hands out: a token, a client certificate or both. */
export const execProvider = (...args: Parameters<typeof execSource>): AuthProvider =>
  sourceProvider(execSource(...args))

/** A provider of an OpenID Connect id-token. */
export const oidcProvider = (...args: Parameters<typeof oidcSource>): AuthProvider =>
  sourceProvider(oidcSource(...args), { clientCertificate: false })

/** The provider of what a context of a kubeconfig says; a context without a credential changes nothing. */
export function contextProvider(context: ResolvedContext, host: CredentialHost): AuthProvider {
  const { source } = credentialSourceFor(context, host)
  return source ? sourceProvider(source) : { updateTransportConfig: () => {} }
}
