import type { Secret } from '../core/index.ts'
import type { ClientCertificate, Credential, CredentialSource } from '../credentials/index.ts'

type TokenFunction = () => Secret | undefined | Promise<Secret | undefined>

/** A certificate that stays and a token that a function of the caller hands out. */
export class FunctionSource implements CredentialSource {
  readonly #certificate: ClientCertificate | undefined
  readonly #token: TokenFunction | undefined

  constructor(certificate: ClientCertificate | undefined, token: TokenFunction | undefined) {
    this.#certificate = certificate
    this.#token = token
  }

  async current(): Promise<Credential> {
    const token = await this.#token?.()
    return {
      ...(token && { token }),
      ...(this.#certificate && { clientCertificate: this.#certificate }),
    }
  }

  async renew(used: Credential): Promise<Credential | undefined> {
    const next = await this.current()
    return next.token?.reveal() === used.token?.reveal() ? undefined : next
  }

  /** Only the token can change, and no connection depends on that. */
  onRotate(): () => void {
    return () => {}
  }

  dispose(): void {}
}
