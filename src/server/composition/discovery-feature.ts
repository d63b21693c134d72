import { firstServiceAddress } from '../../api/index.ts'
import { type ClusterView, hasReason, wellKnownKinds } from '../../core/index.ts'
import {
  bootstrapTokens,
  clusterInfoKey,
  createCertificateController,
  createSigner,
  createTokenCleaner,
  discoveryRequests,
  dnsAddressIn,
  ensureClusterInfo,
  ensureJoinConfig,
  type JoinConfig,
  joinAdmission,
  joinPolicy,
  TokenBook,
  tokenAdmission,
} from '../../discovery/index.ts'
import type { Feature, FeatureContext } from '../feature.ts'
import { hostAndPort } from './serving-names.ts'

/** How strangers find this cluster and trust it, by one short token. */
export const discoveryFeature: Feature = async (context) => {
  const { view, authorizer, clock, log, signal, pki, options } = context
  const book = await TokenBook.open({ view, clock, log, signal })
  let clusterId: string | undefined
  return {
    tokens: [discoveryRequests({ book, clock, clusterId: () => clusterId }), bootstrapTokens(book)],
    admissions: [tokenAdmission, joinAdmission(view, clock)],
    controllers: [
      createSigner(view, clock),
      createTokenCleaner(view, clock),
      createCertificateController({
        view,
        authorizer,
        clock,
        log,
        ca: () => pki.clusterCa,
        longestMs: options.clusterSigningDuration,
      }),
    ],
    onListening: async () => {
      clusterId = await clusterIdOf(view, signal)
      await ensureJoinPolicy(view, signal)
      await ensureJoinConfig(view, joinConfigOf(context), signal)
      const { url: server } = context.location()
      await ensureClusterInfo(view, { server, rootsPem: pki.clusterCa.bundlePem }, signal)
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

/** Gives the rights of a first start; what an operator takes away later stays away. */
async function ensureJoinPolicy(view: ClusterView, signal: AbortSignal): Promise<void> {
  if (await view.get(wellKnownKinds.configMap, clusterInfoKey, signal)) return
  for (const object of joinPolicy) {
    await view.write('create', object, {}, signal).catch((error: unknown) => {
      if (!hasReason(error, 'AlreadyExists')) throw error
    })
  }
}
