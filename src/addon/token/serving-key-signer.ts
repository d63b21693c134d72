import { createPrivateKey, type X509Certificate } from 'node:crypto'
import { KeyRefused } from '../../jose/index.ts'
import { CertificateRefused, parseCertificates, type ServingMaterial } from '../../pki/index.ts'
import { apiServerKey } from './api-server-key.ts'
import { apiServerName } from './profile.ts'
import { type AddonSigner, type AddonSigningKey, addonSigningKey } from './signing-key.ts'

/**
 * Signs with the key that the API server serves with, as the proposal has it, and shows its certificate, so that
 * whoever has the cluster's CA can verify. A certificate that was replaced is followed from the next token on.
 */
export class ServingKeySigner implements AddonSigner {
  readonly #serving: { readonly current: ServingMaterial }
  #material: ServingMaterial | undefined
  #key: AddonSigningKey | undefined

  constructor(serving: { readonly current: ServingMaterial }) {
    this.#serving = serving
  }

  get current(): AddonSigningKey {
    const material = this.#serving.current
    if (!this.#key || material !== this.#material) {
      this.#key = keyOf(material)
      this.#material = material
    }
    return this.#key
  }
}

function keyOf({ certPem, keyPem }: ServingMaterial): AddonSigningKey {
  const shown = parseCertificates(certPem).filter((certificate) => !isRoot(certificate))
  return addonSigningKey(
    createPrivateKey(keyPem.reveal()),
    shown.map((certificate) => certificate.raw.toString('base64')),
  )
}

/** Verifiers trust their own copy of it or none: it would only make tokens longer. */
const isRoot = (certificate: X509Certificate): boolean =>
  certificate.ca && certificate.checkIssued(certificate)

/** Why guards that go by the cluster's CA would refuse all tokens signed with this key; `undefined` if they would not. */
export function problemOfServingKey(
  { certPem }: Pick<ServingMaterial, 'certPem'>,
  caPem: string,
  now: number,
): string | undefined {
  try {
    apiServerKey(parseCertificates(certPem), parseCertificates(caPem), { name: apiServerName, now })
    return undefined
  } catch (error) {
    if (error instanceof CertificateRefused || error instanceof KeyRefused) return error.message
    throw error
  }
}
