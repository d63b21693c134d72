import { X509Certificate } from 'node:crypto'
import type { Clock } from '../../core/index.ts'
import { type CompactJws, KeyRefused, member } from '../../jose/index.ts'
import { CertificateRefused } from '../../pki/trust/index.ts'
import type { CaBundle } from './ca-bundle.ts'
import { AddonTokenRefused } from './claims.ts'
import { maxX5cAgeMs, maxX5cCertificates, maxX5cChains } from './limits.ts'
import {
  type AddonKeySource,
  type AddonVerificationKey,
  apiServerKey,
} from './verification-keys.ts'

/** Whom a token's certificate must be from. */
export interface X5cOptions {
  readonly bundle: CaBundle
  /** The API server's name, which kubelets and users under the same CA do not have in their certificates. */
  readonly serverName: string
  readonly clock: Clock
}

interface Known {
  readonly key: AddonVerificationKey
  readonly until: number
}

/** Believes the key of the certificate in a token's `x5c` if it is an API server's under the cluster's CA. */
export class X5cKeys implements AddonKeySource {
  readonly name = 'x5c'
  readonly #options: X5cOptions
  // A cluster has a handful of API servers, and only what was found good is kept.
  readonly #known = new Map<string, Known>()

  constructor(options: X5cOptions) {
    this.#options = options
    options.bundle.onChange(() => this.#known.clear())
  }

  find({ header }: CompactJws): AddonVerificationKey | undefined {
    const chain = textsOf(member(header.members, 'x5c'))
    if (!chain) return undefined
    const key = this.#keyOf(chain)
    if (header.kid === undefined || header.kid === key.kid) return key
    throw new AddonTokenRefused('bad-signer', "the token's kid is not that of its certificate")
  }

  onRemoved(listener: () => void): void {
    this.#options.bundle.onChange(listener)
  }

  #keyOf(chain: readonly string[]): AddonVerificationKey {
    const id = chain.join(' ')
    const known = this.#known.get(id)
    if (known && this.#options.clock.now() < known.until) return known.key
    const verified = this.#verify(chain)
    if (this.#known.size >= maxX5cChains) this.#known.clear()
    this.#known.set(id, verified)
    return verified.key
  }

  #verify(chain: readonly string[]): Known {
    const { bundle, serverName, clock } = this.#options
    const certificates = chain.map(readCertificate)
    const now = clock.now()
    const expected = { name: serverName, now }
    const ends = certificates.map(({ validTo }) => Date.parse(validTo))
    const until = Math.min(now + maxX5cAgeMs, ...ends)
    try {
      return { key: apiServerKey(certificates, bundle.certificates, expected), until }
    } catch (error) {
      if (!(error instanceof CertificateRefused || error instanceof KeyRefused)) throw error
      throw new AddonTokenRefused(
        'bad-signer',
        `the token's signer is not believed: ${error.message}`,
      )
    }
  }
}

function textsOf(x5c: unknown): readonly string[] | undefined {
  if (x5c === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(x5c) ? x5c : []
  const texts = list.filter((item) => typeof item === 'string')
  if (list.length > 0 && list.length <= maxX5cCertificates && texts.length === list.length)
    return texts
  throw new AddonTokenRefused('bad-header', "the token's x5c is not a short list of certificates")
}

function readCertificate(text: string): X509Certificate {
  const der = Buffer.from(text, 'base64')
  if (der.toString('base64') === text) {
    try {
      return new X509Certificate(der)
    } catch {
      // Said below, for both.
    }
  }
  throw new AddonTokenRefused('bad-header', "the token's x5c has an entry that is no certificate")
}
