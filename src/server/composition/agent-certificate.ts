import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, readFileIfPresent, replaceFile } from '../../core/index.ts'
import { isDueForRenewal, type Pki, privateKeyPem } from '../../pki/index.ts'

/** The organization that certificates of tunnel agents must name. */
export const agentOrganization = 'system:nodes'

/** Where the local agent's certificate lies, together with its key so that both change in one step. */
export const agentCertificateFile = (pki: Pki): string => join(pki.directory, 'tunnel-agent.pem')

/** Issues the local agent's certificate unless the present one is still good; true when it did. */
export async function ensureAgentCertificate(
  pki: Pki,
  nodeName: string,
  clock: Clock,
): Promise<boolean> {
  const path = agentCertificateFile(pki)
  const commonName = `system:node:${nodeName}`
  const pem = await readFileIfPresent(path)
  if (pem !== undefined && isGood(pem, { commonName, pki, now: clock.now() })) return false
  const issued = await pki.issueClient({ commonName, organizations: [agentOrganization] })
  await replaceFile(path, privateKeyPem(issued.key).reveal() + issued.certPem, 0o600)
  return true
}

function isGood(
  pem: string,
  wanted: { readonly commonName: string; readonly pki: Pki; readonly now: number },
): boolean {
  try {
    const certificate = new X509Certificate(pem)
    return (
      certificate.subject.split('\n').includes(`CN=${wanted.commonName}`) &&
      certificate.checkPrivateKey(createPrivateKey(pem)) &&
      certificate.verify(wanted.pki.clusterCa.certificate.publicKey) &&
      !isDueForRenewal(certificate, wanted.now)
    )
  } catch {
    // What cannot be understood is no good either, and is replaced.
    return false
  }
}
