import { signers } from '../../authz/index.ts'
import { machineIdentity, machineNameOf } from '../../core/index.ts'
import { type CertificateRequest, CsrInvalid, parseCsr } from '../../pki/index.ts'
import { signerRule } from './signer-rules.ts'
import type { SigningRequest } from './signing-request.ts'

/** Whether a machine that runs workloads asks for the certificate of its own name anew, and for nothing more. */
export function isMachineRenewal({ signer, requester, pem, usages }: SigningRequest): boolean {
  if (signer !== signers.client || !machineNameOf(requester)) return false
  try {
    const asked = parseCsr(pem)
    return (
      isBareSubject(asked, requester.username) &&
      signerRule(signer)?.problemOf(asked, usages) === undefined
    )
  } catch (error) {
    if (error instanceof CsrInvalid) return false
    throw error
  }
}

/** This name in the group of machines, and no other name, group or attribute. */
const isBareSubject = (
  { subject, dnsNames, ipAddresses, emailAddresses, uris, others }: CertificateRequest,
  username: string,
): boolean =>
  subject.commonName === username &&
  subject.organizations.length === 1 &&
  subject.organizations[0] === machineIdentity.group &&
  subject.otherTypes.length === 0 &&
  dnsNames.length + ipAddresses.length + emailAddresses.length + uris.length + others === 0
