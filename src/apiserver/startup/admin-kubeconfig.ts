import { X509Certificate } from 'node:crypto'
import { type Clock, type Logger, readFileIfPresent, wellKnown } from '../../core/index.ts'
import { makeKubeconfig, parseKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import { isDueForRenewal, type Pki, privateKeyPem } from '../../pki/index.ts'

/** Name of the cluster in the kubeconfigs that we write. */
export const clusterName = 'sallyport'

const adminName = 'kubernetes-admin'

/** True when the file is still good for the server at `url`: same address, same CA, most of its life left. */
async function isGood(
  path: string,
  wanted: { readonly url: string; readonly caPem: string; readonly now: number },
): Promise<boolean> {
  const text = await readFileIfPresent(path)
  if (text === undefined) return false
  const config = await parseKubeconfig(text, path)
  const cluster = config.clusters.get(clusterName)
  const pem = config.users.get(adminName)?.clientCertificateData
  if (!cluster || pem === undefined) return false
  const certificate = new X509Certificate(pem)
  const ca = new X509Certificate(wanted.caPem)
  return (
    cluster.server === wanted.url &&
    cluster.certificateAuthorityData?.trim() === wanted.caPem.trim() &&
    !isDueForRenewal(certificate, wanted.now) &&
    certificate.verify(ca.publicKey)
  )
}

/** Writes the administrator's kubeconfig (mode 0600) unless the present one is still good. */
export async function ensureAdminKubeconfig(
  path: string,
  pki: Pki,
  url: string,
  clock: Clock,
): Promise<void> {
  const { bundlePem: caPem } = pki.clusterCa
  // One that cannot be read or understood is no good either, and is replaced.
  const good = await isGood(path, { url, caPem, now: clock.now() }).catch(() => false)
  if (good) return
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

/** Does something again whenever the cluster's CA has changed; a failure is logged and left to the next periodic check. */
export function afterNewCa(
  pki: Pki,
  work: { readonly name: string; readonly run: () => Promise<void>; readonly log: Logger },
): void {
  pki.onNewClusterCa(() => {
    work.run().catch((err: unknown) => {
      work.log.error({ err, part: work.name }, 'could not follow the new CA')
    })
  })
}
