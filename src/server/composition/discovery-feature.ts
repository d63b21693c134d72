import { firstServiceAddress } from '../../api/index.ts'
import { forApiAudiences } from '../../authn/index.ts'
import { type ClusterView, hasReason, wellKnownKinds } from '../../core/index.ts'
import {
  bootstrapTokens,
  clusterInfoKey,
  createCertificateController,
  createClusterInfoController,
  createSigner,
  createTokenCleaner,
  discoveryMetrics,
  discoveryRequests,
  dnsAddressIn,
  ensureJoinConfig,
  FailureLimit,
  type JoinConfig,
  joinAdmission,
  joinPolicy,
  keepClusterInfo,
  TokenBook,
  tokenAdmission,
  tokenKeys,
} from '../../discovery/index.ts'
import type { Feature, FeatureContext } from '../feature.ts'
import { createFirstToken, readFirstToken } from './first-token.ts'
import { hostAndPort } from './serving-names.ts'

/** How strangers find this cluster and trust it, by one short token. */
export const discoveryFeature: Feature = async (context) => {
  const { view, authorizer, clock, log, signal, pki, options } = context
  const firstToken = await readFirstToken(options, log)
  const book = await TokenBook.open({ view, clock, log, signal })
  const keys = tokenKeys(book, context.fileToken)
  const metrics = discoveryMetrics(context.metrics)
  const failures = new FailureLimit(clock, options.bootstrapTokenFailures, metrics)
  let clusterId: string | undefined
  const clusterInfo = {
    view,
    log,
    own: () =>
      clusterId === undefined
        ? undefined
        : {
            clusterId,
            addresses: [context.location().url] as const,
            rootsPem: pki.clusterCa.bundlePem,
          },
    onNew: (listener: () => void) => pki.onNewClusterCa(listener),
  }
  return {
    tokens: [
      discoveryRequests({ keys, failures, clock, log, clusterId: () => clusterId }),
      forApiAudiences(bootstrapTokens(book, failures, log), context.apiAudiences),
    ],
    admissions: [tokenAdmission, joinAdmission(view, clock)],
    controllers: [
      createClusterInfoController(clusterInfo),
      createSigner(view, clock),
      createTokenCleaner(view, clock),
      createCertificateController({
        view,
        authorizer,
        clock,
        log,
        ca: () => pki.clusterCa,
        longestMs: options.clusterSigningDuration,
        metrics,
      }),
    ],
    onListening: async () => {
      if (await isFirstStart(view, signal)) {
        await ensureJoinPolicy(view, signal)
        if (firstToken) await createFirstToken(firstToken, context)
      }
      await ensureJoinConfig(view, joinConfigOf(context), signal)
      // Only now: as long as it is not known, nobody writes cluster-info.
      clusterId = await clusterIdOf(view, signal)
      await keepClusterInfo(clusterInfo, signal)
    },
  }
}

function joinConfigOf({ options, version, location }: FeatureContext): JoinConfig {
  const { host, port } = location()
  const serviceRanges = options.serviceClusterIpRange
  const range = serviceRanges[0] ?? ''
  return {
    endpoint: hostAndPort(host, port),
    kubernetesVersion: version.gitVersion.replace(/\+.*$/, ''),
    serviceRanges,
    dnsAddress: dnsAddressIn(firstServiceAddress(range), range),
  }
}

/** What is there for a cluster's whole life: the uid of its first namespace. */
async function clusterIdOf(view: ClusterView, signal: AbortSignal): Promise<string | undefined> {
  const namespace = await view.get(wellKnownKinds.namespace, { name: 'kube-system' }, signal)
  return namespace?.metadata.uid
}

/** What is only given then stays away when an operator takes it away later. */
async function isFirstStart(view: ClusterView, signal: AbortSignal): Promise<boolean> {
  return (await view.get(wellKnownKinds.configMap, clusterInfoKey, signal)) === undefined
}

async function ensureJoinPolicy(view: ClusterView, signal: AbortSignal): Promise<void> {
  for (const object of joinPolicy) {
    await view.write('create', object, {}, signal).catch((error: unknown) => {
      if (!hasReason(error, 'AlreadyExists')) throw error
    })
  }
}
