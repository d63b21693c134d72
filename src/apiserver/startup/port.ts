import type { IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import { defaultWatchLimits, noCustomKinds, RequestBodies, ResourceApi } from '../../api/index.ts'
import { impersonation, type Revocations, scopeDecision } from '../../authn/index.ts'
import { denial } from '../../authz/index.ts'
import type { Closers } from '../../core/index.ts'
import {
  ApiError,
  badRequest,
  type Clock,
  isProxied,
  type Logger,
  type MetricsRegistry,
  pause,
} from '../../core/index.ts'
import { createTlsServer, defaultServerLimits, readBody, type TlsServer } from '../../http/index.ts'
import type { ServingCertificate } from '../../pki/index.ts'
import { openAuditLog } from '../audit/log.ts'
import { AuditRecorder, type AuditSink, auditToStream } from '../audit/recorder.ts'
import { type LocalCluster, localBackend } from '../backend/local.ts'
import type { DataDirectory } from '../data-directory/index.ts'
import { CpuAccounts } from '../fairness/cpu-accounts.ts'
import { defaultFairnessLimits, Fairness } from '../fairness/fairness.ts'
import type { FeatureExtension, OpenFeatures } from '../feature.ts'
import {
  addEventLoopMetrics,
  addProcessMetrics,
  addServerMetrics,
  type ProcessStats,
  RequestMetrics,
} from '../metrics.ts'
import type { ServerOptions } from '../options/options.ts'
import { ConnectionGate } from '../pipeline/connection-gate.ts'
import { defaultRequestLimits } from '../pipeline/limits.ts'
import { createPipeline, type PipelineRunner } from '../pipeline/pipeline.ts'
import { ProvenOrigins } from '../pipeline/proven-origins.ts'
import type { PipelineParts, RouteHandler } from '../pipeline/types.ts'
import { createPaths, servedTest, type VersionInfo } from '../routes/routes.ts'
import type { Identity } from './identity.ts'
import { advertiseAddress, hostAndPort } from './serving-names.ts'

/** What stands between the network and the registry. */
export interface GateParts {
  readonly options: ServerOptions
  readonly directory: DataDirectory
  readonly version: VersionInfo
  readonly clock: Clock
  readonly log: Logger
  readonly process: { readonly stats: ProcessStats; readonly stdout: Writable }
  readonly identity: Identity
  readonly cluster: LocalCluster
  readonly revocations: Revocations
  readonly certificate: ServingCertificate
  readonly features: OpenFeatures
  readonly registry: MetricsRegistry
  readonly bodies: RequestBodies
  readonly cpu: CpuAccounts
  /** As of `TlsServerOptions`. */
  readonly http2?: boolean
}

/** The open port and all checks behind it. */
export interface Gate {
  readonly port: number
  /** From now on `/readyz` says yes. */
  ready(): void
}

const mebibyte = 2 ** 20
/** Room for the rendered lists of several thousand objects. */
const listCacheBytes = 64 * mebibyte
/** How long to wait for requests to be recorded after their connections have been cut. */
const lastWordsMs = 1_000

async function openAudit(parts: GateParts): Promise<AuditSink> {
  const { options, directory, clock, log, process } = parts
  if (options.auditLogPath === '-') return auditToStream(process.stdout)
  return openAuditLog({
    path: options.auditLogPath ?? directory.auditLog,
    maxBytes: options.auditLogMaxsize * mebibyte,
    maxBackups: options.auditLogMaxbackup,
    clock,
    log,
  })
}

/**
 * Reads and decodes bodies within the limits of the options, and charges the time that takes.
 * A body without a type is rejected.
 */
export function openBodies(
  options: ServerOptions,
  closers: Closers,
): Pick<GateParts, 'bodies' | 'cpu'> {
  const { maxRequestBodyBytes: maxBytes, requestTimeout: timeoutMs } = options
  const cpu = new CpuAccounts()
  const bodies = new RequestBodies({
    read: async (request, signal) => {
      const body = await readBody(request, { maxBytes, timeoutMs, signal })
      if (body.length > 0) requireContentType(request)
      return body
    },
    charge: (owner, ms) => cpu.charge(owner, ms),
  })
  closers.add('decoding threads', () => bodies.close())
  return { bodies, cpu }
}

/**
 * Any page can have a browser send a body without a type. None can have it send the header of kubectl, whose commands
 * `create --raw` and `replace --raw` name no type either.
 */
function requireContentType({ headers }: IncomingMessage): void {
  if (headers['content-type'] || headers['kubectl-command'] !== undefined) return
  throw new ApiError(
    'UnsupportedMediaType',
    'the body of the request has no Content-Type: send one, as in application/json',
  )
}

function resourceApi(parts: GateParts): ResourceApi<FeatureExtension> {
  const { options, cluster, features, clock, bodies } = parts
  return new ResourceApi({
    context: cluster.context,
    reviews: cluster.reviews,
    bodies,
    requireAllowed: async (authentication, attributes, signal) => {
      const decision =
        scopeDecision(authentication, attributes) ??
        (await cluster.authorizer.authorize(attributes, signal))
      if (!decision.allowed) throw denial(attributes, decision)
    },
    watchLimits: { ...defaultWatchLimits, minTimeoutMs: options.minRequestTimeout * 1000 },
    listCacheBytes,
    extensions: new Map<string, FeatureExtension>([noCustomKinds(clock), ...features.extensions]),
  })
}

function originTest({
  allowedOrigin,
  addonAllowedOrigin,
}: ServerOptions): PipelineParts['isAllowedOrigin'] {
  const everywhere = new Set(allowedOrigin)
  const atAddons = new Set([...allowedOrigin, ...addonAllowedOrigin])
  return (origin, info) => (isProxied(info) ? atAddons : everywhere).has(origin)
}

function pipelineParts(
  parts: GateParts,
  made: {
    readonly audit: AuditRecorder
    readonly fairness: Fairness
    readonly metrics: RequestMetrics
    readonly paths: RouteHandler
    readonly connections: ConnectionGate
  },
): PipelineParts {
  const { options, clock, log, identity, cluster, revocations } = parts
  const resources = resourceApi(parts)
  const backend = localBackend(cluster, resources, [identity.bearer])
  const { authorizer } = backend
  return {
    clock,
    log,
    limits: { ...defaultRequestLimits, maxBodyBytes: options.maxRequestBodyBytes },
    requestTimeoutMs: options.requestTimeout,
    isAllowedOrigin: originTest(options),
    provenOrigins: new ProvenOrigins(),
    authenticator: identity.authenticator,
    onAuthenticated: made.connections.authenticated,
    checkRevocation: (authentication) => revocations.check(authentication),
    impersonate: impersonation({ authorizer, denial }),
    fairness: made.fairness,
    cpu: parts.cpu,
    authorizer,
    denial,
    audit: made.audit,
    metrics: made.metrics,
    onRevoked: (authentication, cut) => revocations.onRevoked(authentication, cut),
    onDistrusted: (request, cut) => identity.onDistrusted(request, cut),
    resources: (request, response, signal) => backend.forward(request, response, signal),
    paths: made.paths,
    upgrade: (request, client, signal) => {
      const upgrade = resources.extensionFor(request.info)?.upgrade
      if (!upgrade) throw badRequest('this path cannot be upgraded')
      return upgrade(request, client, signal)
    },
  }
}

function tlsServer(
  parts: GateParts,
  pipeline: PipelineRunner,
  connections: ConnectionGate,
): TlsServer {
  const { options, identity, certificate, log } = parts
  const material = ({ certPem, keyPem } = certificate.current) => ({
    certPem,
    keyPem,
    clientCaPem: identity.clientRootsPem(),
    minVersion:
      options.tlsMinVersion === 'VersionTLS13' ? ('TLSv1.3' as const) : ('TLSv1.2' as const),
  })
  const server = createTlsServer({
    material: material(),
    onRequest: pipeline.handle,
    onUpgrade: pipeline.upgrade,
    onConnection: connections.admit,
    limits: {
      // Counted by `ConnectionGate`, which makes room for new ones.
      maxConnections: Number.POSITIVE_INFINITY,
      headersTimeoutMs: Math.min(defaultServerLimits.headersTimeoutMs, options.requestTimeout),
    },
    ...(parts.http2 !== undefined && { http2: parts.http2 }),
    log,
  })
  certificate.onNew((next) => server.setSecureContext(material(next)))
  identity.onNewRoots(() => server.setSecureContext(material()))
  return server
}

/** Puts limits, identity, rights, audit and routes together and opens the port. */
export async function openGate(parts: GateParts, closers: Closers): Promise<Gate> {
  const { options, clock, log, process, registry, features } = parts
  const fairness = new Fairness({
    ...defaultFairnessLimits,
    readOnly: options.maxRequestsInflight,
    mutating: options.maxMutatingRequestsInflight,
    // Several of the largest bodies at a time.
    maxHeldBytesPerUser: Math.max(
      defaultFairnessLimits.maxHeldBytesPerUser,
      4 * options.maxRequestBodyBytes,
    ),
    maxHeldBytesInTotal: Math.max(
      defaultFairnessLimits.maxHeldBytesInTotal,
      16 * options.maxRequestBodyBytes,
    ),
  })
  const auditSink = await openAudit(parts)
  closers.add('audit log', () => auditSink.close())
  const audit = new AuditRecorder({ sink: auditSink, clock })
  const metrics = new RequestMetrics(registry, {
    clock,
    isServed: servedTest(features.extensions.keys()),
  })
  const draining = new AbortController()
  const readiness = { ready: false, draining: draining.signal }
  let port = options.securePort
  const address = () => hostAndPort(advertiseAddress(options), port)
  const paths = createPaths({ ...parts, ...features, readiness, address })
  const connections = new ConnectionGate({
    total: options.maxConnections,
    perAddress: options.maxConnectionsPerAddress,
  })
  const pipeline = createPipeline(
    pipelineParts(parts, { audit, fairness, metrics, paths, connections }),
  )
  addProcessMetrics(registry, process.stats)
  addServerMetrics(registry, { fairness, pipeline, audit, auditSink, connections })
  closers.add('event loop metrics', addEventLoopMetrics(registry))
  const server = tlsServer(parts, pipeline, connections)
  const option = '--secure-port'
  const addresses = options.bindAddress.map((host) => ({
    host,
    optional: host.includes(':'),
    option,
  }))
  port = await server.listen(addresses, options.securePort)
  closers.add('port', async (deadline) => {
    draining.abort()
    await pause(options.shutdownDelayDuration, deadline)
    const drained = pipeline.drain()
    await server.stop(deadline)
    await Promise.race([drained, pause(lastWordsMs, deadline)])
    log.info({}, 'stopped serving')
  })
  return {
    port,
    ready: () => {
      readiness.ready = true
    },
  }
}
