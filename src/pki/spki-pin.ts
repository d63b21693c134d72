import { createHash, type X509Certificate } from 'node:crypto'
import { readCertificateFields } from './certificate-fields.ts'

/** The pin of a certificate's public key as kubeadm writes it; a CA keeps its pin when it is renewed with its key. */
export function spkiPin(certificate: X509Certificate): string {
  const { publicKey } = readCertificateFields(certificate.raw)
  return `sha256:${createHash('sha256').update(publicKey).digest('hex')}`
}
