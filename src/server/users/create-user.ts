import { type Clock, type ClusterView, kubeTime } from '../../core/index.ts'
import { type Kubeconfig, makeKubeconfig } from '../../kubeconfig/index.ts'
import { type Pki, privateKeyPem } from '../../pki/index.ts'
import { clusterName } from '../composition/admin-kubeconfig.ts'
import { addUserRecord, type UserRecord } from './user-records.ts'

/** A person who is to get a kubeconfig. */
export interface NewUser {
  readonly name: string
  readonly groups: readonly string[]
  readonly lifetimeMs: number
  /** The URL of the API in the kubeconfig. */
  readonly server: string
  /** The namespace that the kubeconfig names; `default` unless given. */
  readonly namespace?: string
}

/** Issues a client certificate, notes it in the cluster and puts it into a kubeconfig. */
export async function createUser(
  user: NewUser,
  parts: { readonly view: ClusterView; readonly pki: Pki; readonly clock: Clock },
  signal: AbortSignal,
): Promise<{ readonly record: UserRecord; readonly kubeconfig: Kubeconfig }> {
  const { view, pki, clock } = parts
  const { certificate, certPem, key } = await pki.issueClient(
    { commonName: user.name, organizations: user.groups },
    user.lifetimeMs,
  )
  const record: UserRecord = {
    name: user.name,
    groups: user.groups,
    serial: certificate.serialNumber,
    issued: kubeTime(clock.now()),
    expires: kubeTime(Date.parse(certificate.validTo)),
  }
  // Noted first: a certificate that nobody knows of could not be revoked by its serial.
  await addUserRecord(view, record, signal)
  const kubeconfig = makeKubeconfig({
    clusterName,
    server: user.server,
    caPem: pki.clusterCa.bundlePem,
    userName: user.name,
    clientCertPem: certPem,
    clientKeyPem: privateKeyPem(key),
    ...(user.namespace !== undefined && { namespace: user.namespace }),
  })
  return { record, kubeconfig }
}
