import { X509Certificate } from 'node:crypto'
import { type Clock, type Logger, readFileIfPresent, wellKnown } from '../../core/index.ts'
import { makeKubeconfig, parseKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import { isDueForRenewal, type Pki, privateKeyPem } from '../../pki/index.ts'

/** Name of the cluster in the kubeconfigs of the server. */
export const clusterName = 'sallyport'

const adminName = 'kubernetes-admin'

/** True if the file has the current address and CA, and a certificate that is not due for renewal. */
async function isCurrent(
  path: string,
  expected: { readonly url: string; readonly caPem: string; readonly now: number },
): Promise<boolean> {
  const text = await readFileIfPresent(path)
  if (text === undefined) return false
  const config = await parseKubeconfig(text, path)
  const cluster = config.clusters.get(clusterName)
  const pem = config.users.get(adminName)?.clientCertificateData
  if (!cluster || pem === undefined) return false
  const certificate = new X509Certificate(pem)
  const ca = new X509Certificate(expected.caPem)
  return (
    cluster.server === expected.url &&
    cluster.certificateAuthorityData?.trim() === expected.caPem.trim() &&
    !isDueForRenewal(certificate, expected.now) &&
    certificate.verify(ca.publicKey)
  )
}

/** Writes the administrator's kubeconfig (mode 0600) unless the present one is current. */
export async function ensureAdminKubeconfig(
  path: string,
  pki: Pki,
  url: string,
  clock: Clock,
): Promise<void> {
  const { bundlePem: caPem } = pki.clusterCa
  // An invalid file is replaced.
  const current = await isCurrent(path, { url, caPem, now: clock.now() }).catch(() => false)
  if (current) return
  const issued = await pki.issueClient({
    commonName: adminName,
    organizations: [wellKnown.masters],
  })
  const config = makeKubeconfig({
    clusterName,
    server: url,
    caPem,
    userName: adminName,
    clientCertPem: issued.certPem,
    clientKeyPem: privateKeyPem(issued.key),
  })
  await writeKubeconfig(path, config)
}

/** Runs `work` whenever the cluster's CA has changed; a failure is logged, and the next periodic check retries. */
export function afterNewCa(
  pki: Pki,
  work: { readonly name: string; readonly run: () => Promise<void>; readonly log: Logger },
): void {
  pki.onNewClusterCa(() => {
    work.run().catch((err: unknown) => {
      work.log.error({ err, part: work.name }, 'cannot update after the change of the CA')
    })
  })
}
