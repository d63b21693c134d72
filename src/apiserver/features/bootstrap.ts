import { type Controller, firstServiceAddress } from '../../api/index.ts'
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
  joinPolicy,
  keepClusterInfo,
  nodeTokenGroup,
  parseBootstrapToken,
  TokenCache,
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
import { socketBucket } from '../fairness/fairness.ts'
import type { Feature, FeatureParts, OpenContext, ServerLocation } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { hostAndPort } from '../startup/serving-names.ts'

/** Reads the token of `--bootstrap-token` or `--bootstrap-token-file`. */
async function readFirstToken(
  options: ServerOptions,
  log: Logger,
): Promise<BootstrapToken | undefined> {
  const { bootstrapToken, bootstrapTokenFile: path } = options
  if (bootstrapToken && path !== undefined)
    throw new WrongUsage('--bootstrap-token and --bootstrap-token-file cannot be combined')
  const text = path === undefined ? bootstrapToken?.reveal() : await readText(path)
  if (text === undefined) return undefined
  const token = parsed(text.trim(), path)
  const weakness = weaknessOf(token)
  if (weakness !== undefined)
    log.warn({ token: token.id, weakness }, 'the bootstrap token is easy to guess')
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

/** Creates that token in the cluster, as `token create` does. */
async function createFirstToken(
  token: BootstrapToken,
  { view, options, clock, log, signal }: OpenContext,
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
    // A first start that was interrupted has created it already.
    if (!(error instanceof CommandFailed && error.code === 'TOKEN_EXISTS')) throw error
  }
  log.info({ tokenId: token.id }, 'bootstrap token created')
}

/** How machines and users discover this cluster, trust it and join it, by one short token. */
export const bootstrapFeature: Feature = { name: 'bootstrap', open: openBootstrap }

/** What is known once the server has started. */
interface ClusterFacts {
  readonly clusterId: string
  readonly url: string
}

async function openBootstrap(context: OpenContext): Promise<FeatureParts> {
  const { view, clock, log, signal, pki, options } = context
  const firstToken = await readFirstToken(options, log)
  const tokens = await TokenCache.open({ view, clock, log, signal })
  const keys = tokenKeys(tokens, (id) => context.tokenFile?.findStructured(id))
  const metrics = discoveryMetrics(context.metrics)
  const failures = new FailureLimit({
    clock,
    perMinute: options.bootstrapTokenFailures,
    bucketOf: socketBucket,
    metrics,
  })
  let facts: ClusterFacts | undefined
  const clusterInfo = {
    view,
    log,
    own: () =>
      facts && {
        clusterId: facts.clusterId,
        addresses: [facts.url] as const,
        rootsPem: pki.clusterCa.bundlePem,
      },
    onNew: (listener: () => void) => pki.onNewClusterCa(listener),
  }
  const clusterId = () => facts?.clusterId
  return {
    tokens: [
      {
        authenticator: discoveryRequests({ keys, failures, clock, log, clusterId }),
        audiences: 'own',
      },
      { authenticator: bootstrapTokens(tokens, failures, log), audiences: 'api' },
    ],
    controllers: [createClusterInfoController(clusterInfo), ...controllersOf(context, metrics)],
    start: async ({ location }) => {
      if (await isFirstStart(view, signal)) {
        await ensureJoinPolicy(view, signal)
        if (firstToken) await createFirstToken(firstToken, context)
      }
      await ensureJoinConfig(view, joinConfigOf(context, location), signal)
      // Only now: before it is known, cluster-info is not written.
      const id = await clusterIdOf(view, signal)
      if (id !== undefined) facts = { clusterId: id, url: location.url }
      await keepClusterInfo(clusterInfo, signal)
    },
  }
}

const controllersOf = (
  { view, authorizer, clock, log, pki, options }: OpenContext,
  metrics: ReturnType<typeof discoveryMetrics>,
): Controller[] => [
  createSigner(view, clock),
  createTokenCleaner(view, clock),
  createNodeNameCleaner(view, clock),
  createCertificateController({
    view,
    authorizer,
    clock,
    log,
    ca: () => pki.clusterCa,
    maxLifetimeMs: options.clusterSigningDuration,
    metrics,
  }),
]

function joinConfigOf(
  { options, version }: OpenContext,
  { host, port }: ServerLocation,
): JoinConfig {
  const serviceRanges = options.serviceClusterIpRange
  const range = serviceRanges[0] ?? ''
  return {
    endpoint: hostAndPort(host, port),
    kubernetesVersion: version.gitVersion.replace(/\+.*$/, ''),
    serviceRanges,
    dnsAddress: dnsAddressIn(firstServiceAddress(range), range),
  }
}

/** An id that a cluster keeps for its lifetime: the uid of namespace `kube-system`. */
async function clusterIdOf(view: ClusterView, signal: AbortSignal): Promise<string | undefined> {
  const namespace = await view.get(wellKnownKinds.namespace, { name: 'kube-system' }, signal)
  return namespace?.metadata.uid
}

/** Defaults are written at the first start only, so that an administrator can delete them. */
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
