import type { Credential, CredentialSource, Refusal } from '../credential.ts'
import { RotateListeners } from './source.ts'

interface Parts {
  readonly header: Credential
  readonly tls: Credential
}

/** Takes what goes into a header from one source and the client certificate from another. */
export function combinedSource(header: CredentialSource, tls: CredentialSource): CredentialSource {
  return header === tls ? header : new CombinedSource(header, tls)
}

class CombinedSource implements CredentialSource {
  readonly #header: CredentialSource
  readonly #tls: CredentialSource
  readonly #listeners = new RotateListeners()
  readonly #partsOf = new WeakMap<Credential, Parts>()
  #stops: readonly (() => void)[] = []
  #last: { readonly parts: Parts; readonly credential: Credential } | undefined

  constructor(header: CredentialSource, tls: CredentialSource) {
    this.#header = header
    this.#tls = tls
  }

  async current(signal?: AbortSignal): Promise<Credential> {
    const [header, tls] = await Promise.all([
      this.#header.current(signal),
      this.#tls.current(signal),
    ])
    return this.#combine({ header, tls })
  }

  async renew(
    used: Credential,
    refusal: Refusal,
    signal?: AbortSignal,
  ): Promise<Credential | undefined> {
    const parts = this.#partsOf.get(used)
    if (!parts) return undefined
    // The server does not say which of the two it refused.
    const [header, tls] = await Promise.all([
      this.#header.renew(parts.header, refusal, signal),
      this.#tls.renew(parts.tls, refusal, signal),
    ])
    return header || tls ? this.current(signal) : undefined
  }

  onRotate(listener: (next: Credential, previous: Credential) => void): () => void {
    const remove = this.#listeners.add(listener)
    if (this.#stops.length === 0) this.#listen()
    return () => {
      remove()
      if (this.#listeners.size === 0) this.#stopListening()
    }
  }

  dispose(): void {
    this.#stopListening()
    this.#listeners.clear()
    this.#header.dispose()
    this.#tls.dispose()
  }

  /** Only while somebody listens to us, since a source may look at its files for those who listen. */
  #listen(): void {
    this.#stops = [
      this.#header.onRotate((next) => this.#replace({ header: next })),
      this.#tls.onRotate((next) => this.#replace({ tls: next })),
    ]
  }

  #stopListening(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
  }

  #replace(change: Partial<Parts>): void {
    const before = this.#last
    if (!before) return // nobody has the one that was replaced
    this.#listeners.call(this.#combine({ ...before.parts, ...change }), before.credential)
  }

  /** The same two parts are the same credential. */
  #combine(parts: Parts): Credential {
    const last = this.#last
    if (last?.parts.header === parts.header && last.parts.tls === parts.tls) return last.credential
    const credential = merge(parts)
    this.#partsOf.set(credential, parts)
    this.#last = { parts, credential }
    return credential
  }
}

function merge({ header, tls }: Parts): Credential {
  const ends = [header.expiresAt, tls.expiresAt].filter((end) => end !== undefined)
  return {
    ...(header.token && { token: header.token }),
    ...(header.basic && { basic: header.basic }),
    ...(tls.clientCertificate && { clientCertificate: tls.clientCertificate }),
    ...(ends.length > 0 && { expiresAt: Math.min(...ends) }),
  }
}
