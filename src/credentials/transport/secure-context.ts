import { createSecureContext, type SecureContext } from 'node:tls'
import { systemErrorCode } from '../../core/index.ts'
import type { ClientCertificate } from '../credential.ts'
import { ClientConfigInvalid } from './transport-errors.ts'

/** What all connections of one identity share: our certificate and the authorities that we believe. */
export function makeSecureContext(
  caPem: string | undefined,
  certificate: ClientCertificate | undefined,
): SecureContext {
  // Node would believe nobody, or for an empty text everybody that the system believes.
  if (caPem !== undefined && !/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/.test(caPem))
    throw new ClientConfigInvalid('the certificate authority of the cluster holds no certificate')
  try {
    return createSecureContext({
      minVersion: 'TLSv1.2',
      ...(caPem !== undefined && { ca: caPem }),
      ...(certificate && { cert: certificate.certPem, key: certificate.keyPem.reveal() }),
    })
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown'
    throw new ClientConfigInvalid(
      `the CA, the client certificate or its key cannot be used (${code})`,
      { cause },
    )
  }
}

/** Throws ClientConfigInvalid for a CA, a certificate or a key that TLS cannot use. */
export function checkTlsMaterial(
  caPem: string | undefined,
  certificate: ClientCertificate | undefined,
): void {
  makeSecureContext(caPem, certificate)
}

/** Tells whether two certificates prove the same identity with the same key. */
export function sameCertificate(
  one: ClientCertificate | undefined,
  other: ClientCertificate | undefined,
): boolean {
  if (one === other) return true
  if (!one || !other) return false
  return one.certPem === other.certPem && one.keyPem.reveal() === other.keyPem.reveal()
}
