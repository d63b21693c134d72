import type { X509Certificate } from 'node:crypto'
import { clientPathRules } from './certificate-path-rules.ts'
import { CertificateRefused } from './certificate-refused.ts'
import { requireCertificatePath } from './require-certificate-path.ts'

/** Whom a verified client certificate names. */
export interface ClientCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  /** Upper-case hexadecimal. */
  readonly serial: string
  /** Upper-case hexadecimal pairs with colons between them. */
  readonly fingerprint256: string
  /** Epoch milliseconds. */
  readonly notAfter: number
}

/**
 * Verifies that a CA of the bundle vouches for a client certificate, and says whom it names.
 * `chain` is what the client sent: its own certificate, then any intermediates in any order. What TLS
 * itself found does not matter, since it does not tell under which CA.
 */
export function verifyClientCertificate(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  now: number,
): ClientCertificate {
  const { certificate, fields } = requireCertificatePath(chain, bundle, {
    rules: clientPathRules,
    now,
  })
  const { commonName, organizations } = fields.subject
  if (!commonName)
    throw new CertificateRefused('NO_COMMON_NAME', 'the certificate has no common name')
  return {
    commonName,
    organizations,
    serial: certificate.serialNumber,
    fingerprint256: certificate.fingerprint256,
    notAfter: Date.parse(certificate.validTo),
  }
}
