import type { KeyObject, X509Certificate } from 'node:crypto'
import { PemInvalid, parseCertificates, readCertificateFields } from '../../pki/trust/index.ts'
import { JoinFailed } from './join-failed.ts'
import type { WantedCertificate } from './wanted-certificate.ts'

/** Checks that a certificate is for our key and the name that was asked for, and valid now; returns it. */
export function checkCertificate(
  pem: string,
  expected: { readonly key: KeyObject; readonly wanted: WantedCertificate; readonly nowMs: number },
): X509Certificate {
  const [certificate] = parsed(pem)
  if (!certificate?.checkPrivateKey(expected.key)) throw wrong('it is for another key')
  const { commonName } = expected.wanted.subject
  if (commonNameOf(certificate) !== commonName) throw wrong(`it is not for ${commonName}`)
  if (Date.parse(certificate.validFrom) > expected.nowMs)
    throw wrong(`it is valid from ${certificate.validFrom} only: is this machine's clock late?`)
  if (Date.parse(certificate.validTo) <= expected.nowMs)
    throw wrong(`it ended at ${certificate.validTo}: is this machine's clock ahead?`)
  return certificate
}

const commonNameOf = (certificate: X509Certificate): string =>
  readCertificateFields(certificate.raw).subject.commonName

function parsed(pem: string): X509Certificate[] {
  try {
    return parseCertificates(pem)
  } catch (error) {
    if (error instanceof PemInvalid) throw wrong(error.message)
    throw error
  }
}

const wrong = (why: string): JoinFailed =>
  new JoinFailed('certificate-wrong', `the certificate that was issued cannot be used: ${why}`, {
    hint: 'see what the signer of the cluster does; --force asks anew',
  })
