import type { Cluster, Kubeconfig, KubeconfigUser } from '../../kubeconfig/index.ts'
import type { JoinedIdentity } from './join-order.ts'

/** A kubeconfig for a cluster that was found, and for who joined it if anybody did. */
export function joinedKubeconfig(
  cluster: Cluster,
  identity?: Pick<JoinedIdentity, 'username' | 'certificatePem' | 'keyPem'>,
): Kubeconfig {
  const clusterName = new URL(cluster.server).hostname.replaceAll(/[[\]]/g, '')
  const userName = identity?.username ?? ''
  const contextName = identity ? `${userName}@${clusterName}` : clusterName
  const user: KubeconfigUser | undefined = identity && {
    clientCertificateData: identity.certificatePem,
    clientKeyData: identity.keyPem,
  }
  return {
    currentContext: contextName,
    clusters: new Map([[clusterName, cluster]]),
    users: new Map(user ? [[userName, user]] : []),
    contexts: new Map([[contextName, { cluster: clusterName, user: userName }]]),
  }
}
