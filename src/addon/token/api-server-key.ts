import type { X509Certificate } from 'node:crypto'
import { wellKnown } from '../../core/index.ts'
import {
  CertificateRefused,
  readCertificateFields,
  verifyServerCertificate,
} from '../../pki/trust/index.ts'
import { type AddonVerificationKey, addonVerificationKey } from './verification-key.ts'

/**
 * The key of the certificate in front, if that is an API server's: a CA of the bundle vouches for it, it is for
 * servers, bears the name and is no node's. Throws CertificateRefused or KeyRefused.
 */
export function apiServerKey(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  expected: { readonly name: string; readonly now: number },
): AddonVerificationKey {
  verifyServerCertificate(chain, bundle, expected)
  const [leaf] = chain
  if (!leaf) throw new CertificateRefused('MALFORMED', 'there is no certificate')
  const { commonName, organizations } = readCertificateFields(leaf.raw).subject
  // A kubelet asks for the names that it likes, and whoever approves that may not look at them.
  if (organizations.includes(wellKnown.nodes) || commonName.startsWith(wellKnown.nodeUserPrefix))
    throw new CertificateRefused('WRONG_NAME', 'the certificate is that of a node')
  return addonVerificationKey(leaf.publicKey)
}
