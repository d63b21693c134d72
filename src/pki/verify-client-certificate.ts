import type { X509Certificate } from 'node:crypto'
import { readCertificateFields } from './certificate-fields.ts'
import { pathRules } from './certificate-path-rules.ts'
import { certificatePaths } from './certificate-paths.ts'
import { CertificateRefused } from './certificate-refused.ts'
import { DerInvalid } from './der.ts'
import type { SubjectName } from './distinguished-name.ts'

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
  const [leaf, ...intermediates] = chain
  if (!leaf) throw new CertificateRefused('MALFORMED', 'there is no certificate')
  let refusal: CertificateRefused | undefined
  // A CA that was renewed with its key stands in a bundle twice, and the old one may have expired.
  for (const path of certificatePaths(leaf, intermediates, bundle)) {
    try {
      const { commonName, organizations } = checkPath(path, now)
      return {
        commonName,
        organizations,
        serial: leaf.serialNumber,
        fingerprint256: leaf.fingerprint256,
        notAfter: Date.parse(leaf.validTo),
      }
    } catch (error) {
      refusal ??= toRefusal(error)
    }
  }
  const unknown = 'the certificate is not signed by a CA that is trusted for clients'
  throw refusal ?? new CertificateRefused('UNKNOWN_AUTHORITY', unknown)
}

function checkPath(path: readonly X509Certificate[], now: number): SubjectName {
  const steps = path.map((certificate, depth) => ({
    certificate,
    depth,
    fields: readCertificateFields(certificate.raw),
    trusted: depth === path.length - 1,
  }))
  for (const step of steps) for (const rule of pathRules) rule(step, now)
  const subject = steps[0]?.fields.subject
  if (subject?.commonName) return subject
  throw new CertificateRefused('NO_COMMON_NAME', 'the certificate has no common name')
}

function toRefusal(error: unknown): CertificateRefused {
  if (error instanceof CertificateRefused) return error
  if (!(error instanceof DerInvalid)) throw error
  return new CertificateRefused('MALFORMED', 'a certificate cannot be read', { cause: error })
}
