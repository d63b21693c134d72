import type { Secret } from '../core/index.ts'
import type { Kubeconfig, KubeconfigUser } from './kubeconfig.ts'

/** How a user of a new kubeconfig proves who they are. */
export type NewCredential =
  | { readonly clientCertPem: string; readonly clientKeyPem: Secret }
  | { readonly token: Secret }

/** A kubeconfig with one cluster, one user and one context for them, and every file in it inline. */
export function makeKubeconfig(
  facts: {
    readonly clusterName: string
    readonly server: string
    readonly caPem: string
    readonly userName: string
    readonly namespace?: string
  } & NewCredential,
): Kubeconfig {
  const { clusterName, userName, namespace } = facts
  const contextName = `${userName}@${clusterName}`
  const user: KubeconfigUser =
    'token' in facts
      ? { token: facts.token }
      : { clientCertificateData: facts.clientCertPem, clientKeyData: facts.clientKeyPem }
  return {
    currentContext: contextName,
    clusters: new Map([
      [clusterName, { server: facts.server, certificateAuthorityData: facts.caPem }],
    ]),
    users: new Map([[userName, user]]),
    contexts: new Map([
      [
        contextName,
        { cluster: clusterName, user: userName, ...(namespace !== undefined && { namespace }) },
      ],
    ]),
  }
}
