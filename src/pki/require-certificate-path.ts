import type { X509Certificate } from 'node:crypto'
import { readCertificateFields } from './certificate-fields.ts'
import type { PathRule, PathStep } from './certificate-path-rules.ts'
import { certificatePaths } from './certificate-paths.ts'
import { CertificateRefused } from './certificate-refused.ts'
import { DerInvalid } from './der.ts'

/**
 * Finds a way from the first certificate of a chain up to one of the bundle on which every certificate keeps
 * the rules, and returns the first step; throws CertificateRefused.
 */
export function requireCertificatePath(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  { rules, now }: { readonly rules: readonly PathRule[]; readonly now: number },
): PathStep {
  const [leaf, ...intermediates] = chain
  if (!leaf) throw new CertificateRefused('MALFORMED', 'there is no certificate')
  let refusal: CertificateRefused | undefined
  // A CA that was renewed with its key stands in a bundle twice, and the old one may have expired.
  for (const path of certificatePaths(leaf, intermediates, bundle)) {
    try {
      const steps = stepsOf(path)
      for (const step of steps) for (const rule of rules) rule(step, now)
      if (steps[0]) return steps[0]
    } catch (error) {
      refusal ??= toRefusal(error)
    }
  }
  const unknown = 'the certificate is not signed by a CA that is trusted for this'
  throw refusal ?? new CertificateRefused('UNKNOWN_AUTHORITY', unknown)
}

const stepsOf = (path: readonly X509Certificate[]): PathStep[] =>
  path.map((certificate, depth) => ({
    certificate,
    depth,
    fields: readCertificateFields(certificate.raw),
    trusted: depth === path.length - 1,
  }))

function toRefusal(error: unknown): CertificateRefused {
  if (error instanceof CertificateRefused) return error
  if (!(error instanceof DerInvalid)) throw error
  return new CertificateRefused('MALFORMED', 'a certificate cannot be read', { cause: error })
}
