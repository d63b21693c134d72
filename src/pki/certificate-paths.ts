import type { X509Certificate } from 'node:crypto'

const maxLength = 6
const maxSignatures = 30

/**
 * Every way from a certificate up to a trusted one, each step a signature that holds. The client
 * chooses what is searched, so the search ends after a fixed amount of work.
 */
export function* certificatePaths(
  leaf: X509Certificate,
  intermediates: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
): Generator<readonly X509Certificate[]> {
  let signaturesLeft = maxSignatures
  const signed = (ca: X509Certificate, certificate: X509Certificate): boolean => {
    if (!ca.ca || !certificate.checkIssued(ca) || signaturesLeft <= 0) return false
    signaturesLeft--
    return certificate.verify(ca.publicKey)
  }
  function* extend(path: readonly X509Certificate[]): Generator<readonly X509Certificate[]> {
    const last = path.at(-1)
    if (!last || path.length >= maxLength) return
    for (const ca of trusted) if (signed(ca, last)) yield [...path, ca]
    for (const ca of intermediates) {
      if (!path.includes(ca) && signed(ca, last)) yield* extend([...path, ca])
    }
  }
  yield* extend([leaf])
}
