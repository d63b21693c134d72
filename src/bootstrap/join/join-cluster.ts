import { createPrivateKey, type KeyObject } from 'node:crypto'
import { type Secret, wellKnownKinds } from '../../core/index.ts'
import type { Cluster, Kubeconfig, KubeconfigUser } from '../../kubeconfig/index.ts'
import { generateEcKey, privateKeyPem } from '../../pki/trust/index.ts'
import { defaultTimeoutMs } from '../discovery/limits.ts'
import { completeParts } from '../discovery/options.ts'
import { tracedTransport } from '../discovery/requests.ts'
import { retry } from '../discovery/retry.ts'
import { Asking } from './request-certificate.ts'
import type { JoinedIdentity, JoinOrder, JoinParts } from './requested-certificate.ts'

/** Gets a certificate from a cluster that is trusted: makes a key, asks, and waits for the answer; throws JoinFailed. */
export async function joinCluster(
  order: JoinOrder,
  parts: JoinParts = {},
): Promise<JoinedIdentity> {
  const { signal, clock, pause, onProgress, systemRoots, log } = completeParts(parts)
  // Loaded here, so that those who only look for a cluster do not pay for it.
  const { createKubeClient, transportFromKubeconfig } = await import('../../client/index.ts')
  const connected = await transportFromKubeconfig({
    cluster: {
      ...order.cluster,
      certificateAuthorityData:
        order.cluster.certificateAuthorityData ?? (await systemRoots()).join('\n'),
    },
    user: order.credential,
  })
  const transport = tracedTransport(connected, log)
  const client = createKubeClient({ transport, kinds: [wellKnownKinds.certificateSigningRequest] })
  try {
    const key = keptKey(order.keyPem) ?? (await generateEcKey())
    await parts.keepKey?.(privateKeyPem(key))
    const asking = new Asking(order, { client, key, clock, parts })
    await retry(() => asking.ask(signal), {
      timeoutMs: order.timeoutMs ?? defaultTimeoutMs,
      clock,
      signal,
      pause,
      onWait: (failure, waitMs) => {
        const { reason } = failure
        log.trace({ reason, waitMs: Math.round(waitMs) }, 'asking failed, another attempt follows')
        onProgress({ step: 'waiting', failure, waitMs })
      },
    })
    return await asking.await(pause, signal)
  } finally {
    transport.destroy()
  }
}

/** The key of an earlier run; undefined if there is none, or what is there cannot be used. */
function keptKey(pem: Secret | undefined): KeyObject | undefined {
  if (!pem) return undefined
  try {
    const key = createPrivateKey(pem.reveal())
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

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
