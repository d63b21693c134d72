import type { RequestFn } from '../cluster-request.ts'
import type { CredentialSource } from '../credential.ts'
import { combinedSource, staticSource } from '../sources/index.ts'
import type {
  AuthProvider,
  RequestWrapper,
  TransportConfig,
  TransportTls,
} from './transport-config.ts'

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
