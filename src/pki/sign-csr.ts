import type { X509Certificate } from 'node:crypto'
import { commonNameOid, readCertificateFields } from './certificate.ts'
import {
  type CertificateOrder,
  type IssuedCertificate,
  issueCertificate,
} from './issue-certificate.ts'
import { type CertificateRequest, CsrInvalid } from './parse-csr.ts'

/**
 * Issues what a request asks for: its subject, its names, its key. Whether it may ask for that is the
 * caller's decision, made on the same parsed request.
 */
export async function signCsr(
  request: CertificateRequest,
  order: Pick<CertificateOrder, 'ca' | 'usages' | 'now' | 'lifetimeMs'>,
): Promise<IssuedCertificate> {
  if (request.others > 0) throw new CsrInvalid('it asks for alternative names that are not issued')
  // Readers of certificates differ on which one counts, so one could pass for another.
  if (request.subject.otherTypes.includes(commonNameOid))
    throw new CsrInvalid('its subject has more than one common name')
  const issued = await issueCertificate({
    ...order,
    subject: { der: request.subjectDer },
    publicKey: request.publicKey,
    sans: [...request.dnsNames, ...request.ipAddresses],
    emailAddresses: request.emailAddresses,
    uris: request.uris,
  })
  checkSameSubject(issued.certificate, request)
  return issued
}

// Two readers have seen the subject, ours that decided and the library that wrote. They must agree.
function checkSameSubject(certificate: X509Certificate, request: CertificateRequest): void {
  const { subject } = readCertificateFields(certificate.raw)
  if (JSON.stringify(subject) === JSON.stringify(request.subject)) return
  throw new CsrInvalid('the subject cannot be issued as it stands in the request')
}
