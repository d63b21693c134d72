import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { Secret } from '../../core/index.ts'
import { wellKnownKinds } from '../../core/index.ts'
import { generateEcKey, privateKeyPem } from '../../pki/trust/index.ts'
import { completeParts } from '../client/discovery-order.ts'
import { untilItWorks } from '../client/retry.ts'
import { tracedTransport } from '../client/traced-transport.ts'
import { Asking } from './asking.ts'
import type { JoinedIdentity, JoinOrder, JoinParts } from './join-order.ts'

const usualTimeoutMs = 5 * 60_000

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
    await untilItWorks(() => asking.ask(signal), {
      timeoutMs: order.timeoutMs ?? usualTimeoutMs,
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
