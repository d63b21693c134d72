import type { ResolvedContext } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource, RequestFn } from '../credential.ts'
import {
  type CertificateFiles,
  type CredentialHost,
  certificateFileSource,
  combinedSource,
  credentialSourceFor,
  execSource,
  type FileSourceHost,
  oidcSource,
  staticSource,
  tokenFileSource,
} from '../sources/index.ts'
import type {
  AuthProvider,
  RequestWrapper,
  TransportConfig,
  TransportTls,
} from '../transport/types.ts'

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

const nothing = staticSource({})

/** A transport before it is made: providers change it, then `credentials` and `wrapped` say what they left. */
export class TransportDraft implements TransportConfig {
  readonly server: string
  readonly tls: TransportTls
  readonly #wrappers: RequestWrapper[] = []
  #header: CredentialSource | undefined
  #certificate: CredentialSource | undefined
  #combined: CredentialSource | undefined

  constructor(target: { readonly server: string; readonly tls: TransportTls }) {
    this.server = target.server
    this.tls = target.tls
  }

  get credentials(): CredentialSource | undefined {
    if (!this.#header && !this.#certificate) return undefined
    this.#combined ??= combinedSource(this.#header ?? nothing, this.#certificate ?? nothing)
    return this.#combined
  }

  offerAuthorization(source: CredentialSource): boolean {
    if (this.#header) return false
    this.#header = source
    this.#combined = undefined
    return true
  }

  offerClientCertificate(source: CredentialSource): boolean {
    if (this.#certificate) return false
    this.#certificate = source
    this.#combined = undefined
    return true
  }

  /** What providers have put round requests, the outermost last. */
  get wrappers(): readonly RequestWrapper[] {
    return this.#wrappers
  }

  wrap(wrapper: RequestWrapper): void {
    this.#wrappers.push(wrapper)
  }

  /** The function that sends requests, with everything round it that providers have added. */
  wrapped(send: RequestFn): RequestFn {
    return this.#wrappers.reduce((next, wrapper) => wrapper(next), send)
  }
}

/** Lets providers in turn say how a transport proves who uses it; called once for each transport. */
export async function draftTransport(
  target: { readonly server: string; readonly tls: TransportTls },
  providers: readonly AuthProvider[],
): Promise<TransportDraft> {
  const draft = new TransportDraft(target)
  for (const provider of providers) await provider.updateTransportConfig(draft)
  return draft
}
