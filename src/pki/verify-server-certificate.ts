import type { X509Certificate } from 'node:crypto'
import { serverPathRules } from './certificate-path-rules.ts'
import { CertificateRefused } from './certificate-refused.ts'
import { requireCertificatePath } from './require-certificate-path.ts'

/**
 * Verifies that a CA of the bundle vouches for a server's certificate and that it names the server; throws
 * CertificateRefused. A certificate that states no usage, that is a CA, or that names the server only by a
 * wildcard or in its subject is refused: TLS would take it, but here others hold certificates of the same CA.
 */
export function verifyServerCertificate(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  expected: { readonly name: string; readonly now: number },
): void {
  const { certificate } = requireCertificatePath(chain, bundle, {
    rules: serverPathRules,
    now: expected.now,
  })
  const rules = { subject: 'never', wildcards: false } as const
  if (certificate.checkHost(expected.name, rules) !== undefined) return
  throw new CertificateRefused('WRONG_NAME', `the certificate is not one of ${expected.name}`)
}
