import { firstServiceAddress } from '../../api/index.ts'
import { forApiAudiences } from '../../authn/index.ts'
import {
  type BootstrapToken,
  BootstrapTokenInvalid,
  bootstrapTokens,
  clusterInfoKey,
  createCertificateController,
  createClusterInfoController,
  createNodeNameCleaner,
  createSigner,
  createToken,
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
  nodeNameAdmission,
  nodeTokenGroup,
  parseBootstrapToken,
  TokenCache,
  tokenAdmission,
  tokenKeys,
  weaknessOf,
} from '../../bootstrap/index.ts'
import {
  type ClusterView,
  CommandFailed,
  hasReason,
  type Logger,
  readGivenFile,
  WrongUsage,
  wellKnownKinds,
} from '../../core/index.ts'
import type { Feature, FeatureContext } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { socketBucket } from '../pipeline/limits.ts'
import { hostAndPort } from '../startup/serving-names.ts'

/** Reads the token that an operator has chosen before there was a cluster. */
async function readFirstToken(
  options: ServerOptions,
  log: Logger,
): Promise<BootstrapToken | undefined> {
  const { bootstrapToken, bootstrapTokenFile: path } = options
  if (bootstrapToken && path !== undefined)
    throw new WrongUsage('--bootstrap-token and --bootstrap-token-file exclude each other')
  const text = path === undefined ? bootstrapToken?.reveal() : await readText(path)
  if (text === undefined) return undefined
  const token = parsed(text.trim(), path)
  const weakness = weaknessOf(token)
  if (weakness !== undefined)
    log.warn({ token: token.id, weakness }, 'the bootstrap token is easier to guess than need be')
  return token
}

async function readText(path: string): Promise<string> {
  return readGivenFile(
    path,
    (why, cause) => new CommandFailed('TOKEN_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
  )
}

function parsed(text: string, path: string | undefined): BootstrapToken {
  try {
    return parseBootstrapToken(text)
  } catch (cause) {
    if (!(cause instanceof BootstrapTokenInvalid)) throw cause
    const where = path === undefined ? '--bootstrap-token' : path
    throw new CommandFailed('TOKEN_MALFORMED', `${where}: ${cause.message}`, {
      hint: 'a token looks like abcdef.0123456789abcdef',
      cause,
    })
  }
}

/** Makes that token in the cluster, as `token create` would. */
async function createFirstToken(
  token: BootstrapToken,
  { view, options, clock, log, signal }: FeatureContext,
): Promise<void> {
  const ttlMs = options.bootstrapTokenTtl
  const stored = {
    token,
    usages: new Set(['signing', 'authentication'] as const),
    extraGroups: [nodeTokenGroup],
    description: 'given at the first start',
    ...(ttlMs > 0 && { expiresAt: clock.now() + ttlMs }),
  }
  try {
    await createToken(view, stored, signal)
  } catch (error) {
    // A first start that was cut off has made it already.
    if (!(error instanceof CommandFailed && error.code === 'TOKEN_EXISTS')) throw error
  }
  log.info({ tokenId: token.id }, 'machines may join with the given token')
}

/** How strangers find this cluster and trust it, by one short token. */
export const discoveryFeature: Feature = async (context) => {
  const { view, authorizer, clock, log, signal, pki, options } = context
  const firstToken = await readFirstToken(options, log)
  const cache = await TokenCache.open({ view, clock, log, signal })
  const keys = tokenKeys(cache, context.fileToken)
  const metrics = discoveryMetrics(context.metrics)
  const failures = new FailureLimit({
    clock,
    perMinute: options.bootstrapTokenFailures,
    bucketOf: socketBucket,
    metrics,
  })
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
      forApiAudiences(bootstrapTokens(cache, failures, log), context.apiAudiences),
    ],
    admissions: [tokenAdmission, nodeNameAdmission, joinAdmission(view, clock)],
    controllers: [
      createClusterInfoController(clusterInfo),
      createSigner(view, clock),
      createTokenCleaner(view, clock),
      createNodeNameCleaner(view, clock),
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
