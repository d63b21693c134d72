import type { IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import { defaultWatchLimits, noCustomKinds, RequestBodies, ResourceApi } from '../../api/index.ts'
import { impersonation, type Revocations, scopeDecision } from '../../authn/index.ts'
import { denial } from '../../authz/index.ts'
import {
  ApiError,
  type Backend,
  type Clock,
  type Closers,
  type Logger,
  type MetricsRegistry,
  pause,
} from '../../core/index.ts'
import { createTlsServer, defaultServerLimits, readBody, type TlsServer } from '../../http/index.ts'
import type { ServingCertificate } from '../../pki/index.ts'
import { openAuditLog } from '../audit/log.ts'
import { AuditRecorder, type AuditSink, auditToStream } from '../audit/recorder.ts'
import { LocalBackend, type LocalCluster } from '../backend/local.ts'
import type { DataDirectory } from '../data-directory/index.ts'
import { CpuAccounts } from '../fairness/cpu-accounts.ts'
import { Fairness } from '../fairness/fairness.ts'
import { type OpenFeatures, pathOf } from '../feature.ts'
import {
  defaultFairnessLimits,
  defaultRequestLimits,
  maxListCacheBytes,
  maxRecordMs,
} from '../limits.ts'
import {
  addEventLoopMetrics,
  addProcessMetrics,
  addServerMetrics,
  type ProcessStats,
  RequestMetrics,
} from '../metrics.ts'
import type { ServerOptions } from '../options/options.ts'
import { OriginPolicy } from '../pipeline/check-origin.ts'
import { ConnectionGate } from '../pipeline/connection-gate.ts'
import { createPipeline, type Pipeline } from '../pipeline/pipeline.ts'
import type { PathRoutes } from '../routes/route.ts'
import { createPaths, type VersionInfo } from '../routes/routes.ts'
import type { Identity } from './identity.ts'
import { advertiseAddress, hostAndPort } from './serving-names.ts'

/** What the port and its pipeline are made of. */
export interface PortDeps {
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
  readonly metrics: MetricsRegistry
  readonly bodies: RequestBodies
  readonly cpu: CpuAccounts
  /** As of `TlsServerOptions`. */
  readonly http2?: boolean
}

/** The open port. */
export interface ApiPort {
  readonly port: number
  /** `/readyz` passes from now on. */
  ready(): void
}

const mebibyte = 2 ** 20

async function openAudit(deps: PortDeps): Promise<AuditSink> {
  const { options, directory, clock, log, process } = deps
  if (options.auditLogPath === '-') return auditToStream(process.stdout)
  return openAuditLog({
    path: options.auditLogPath ?? directory.auditLog,
    maxBytes: options.auditLogMaxsize * mebibyte,
    maxBackups: options.auditLogMaxbackup,
    clock,
    log,
  })
}

/** Reads and decodes request bodies within the limits of the options, and charges their CPU time. */
export function openBodies(
  options: ServerOptions,
  closers: Closers,
): Pick<PortDeps, 'bodies' | 'cpu'> {
  const { maxRequestBodyBytes: maxBytes, requestTimeout: timeoutMs } = options
  const cpu = new CpuAccounts()
  const bodies = new RequestBodies({
    read: async (request, signal) => {
      const body = await readBody(request, { maxBytes, timeoutMs, signal })
      if (body.length > 0) requireContentType(request)
      return body
    },
    cpu,
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

function localBackend(deps: PortDeps, paths: PathRoutes): Backend {
  const { options, cluster, features, clock, bodies } = deps
  const resources = new ResourceApi({
    context: cluster.context,
    reviews: cluster.reviews,
    bodies,
    cpu: deps.cpu,
    requireAllowed: async (authentication, attributes, signal) => {
      const decision =
        scopeDecision(authentication, attributes) ??
        (await cluster.authorizer.authorize(attributes, signal))
      if (!decision.allowed) throw denial(attributes, decision)
    },
    watchLimits: { ...defaultWatchLimits, minTimeoutMs: options.minRequestTimeout * 1000 },
    listCacheBytes: maxListCacheBytes,
    virtual: new Map([noCustomKinds(clock), ...features.virtual]),
  })
  return new LocalBackend({ cluster, resources, paths, serviceProxy: features.serviceProxy })
}

function fairnessOf(options: ServerOptions): Fairness {
  const { maxHeldBytesPerUser, maxHeldBytesInTotal } = defaultFairnessLimits
  const maxBodyBytes = options.maxRequestBodyBytes
  return new Fairness({
    ...defaultFairnessLimits,
    readOnly: options.maxRequestsInflight,
    mutating: options.maxMutatingRequestsInflight,
    // Several of the largest bodies at a time.
    maxHeldBytesPerUser: Math.max(maxHeldBytesPerUser, 4 * maxBodyBytes),
    maxHeldBytesInTotal: Math.max(maxHeldBytesInTotal, 16 * maxBodyBytes),
  })
}

function tlsServer(deps: PortDeps, pipeline: Pipeline, connections: ConnectionGate): TlsServer {
  const { options, identity, certificate, log } = deps
  const { clientTrust } = identity
  const material = ({ certPem, keyPem } = certificate.current) => ({
    certPem,
    keyPem,
    clientCaPem: clientTrust.pem,
    minVersion:
      options.tlsMinVersion === 'VersionTLS13' ? ('TLSv1.3' as const) : ('TLSv1.2' as const),
  })
  const server = createTlsServer({
    material: material(),
    onRequest: pipeline.handle,
    onUpgrade: pipeline.upgrade,
    onConnection: connections.admit,
    limits: {
      // Counted by `ConnectionGate`, which closes others for new ones.
      maxConnections: Number.POSITIVE_INFINITY,
      headersTimeoutMs: Math.min(defaultServerLimits.headersTimeoutMs, options.requestTimeout),
    },
    ...(deps.http2 !== undefined && { http2: deps.http2 }),
    log,
  })
  certificate.onNew((next) => server.setSecureContext(material(next)))
  clientTrust.onNew(() => server.setSecureContext(material()))
  return server
}

/** Opens the port with the pipeline behind it. */
export async function openPort(deps: PortDeps, closers: Closers): Promise<ApiPort> {
  const { options, clock, log, metrics, features, identity, cluster, revocations } = deps
  const auditSink = await openAudit(deps)
  closers.add('audit log', () => auditSink.close())
  const draining = new AbortController()
  const readiness = { ready: false, draining: draining.signal }
  let port = options.securePort
  const address = (): string => hostAndPort(advertiseAddress(options), port)
  const paths = createPaths({ ...deps, ...features, readiness, address })
  const fairness = fairnessOf(options)
  const audit = new AuditRecorder({ sink: auditSink, clock })
  const connections = new ConnectionGate({
    total: options.maxConnections,
    perAddress: options.maxConnectionsPerAddress,
  })
  const pipeline = createPipeline({
    clock,
    log,
    limits: { ...defaultRequestLimits, maxBodyBytes: options.maxRequestBodyBytes },
    requestTimeoutMs: options.requestTimeout,
    origins: new OriginPolicy(options),
    authenticator: identity.authenticator,
    connections,
    revocations,
    clientTrust: identity.clientTrust,
    impersonate: impersonation({ authorizer: cluster.authorizer, denial }),
    fairness,
    cpu: deps.cpu,
    backend: localBackend(deps, paths),
    denial,
    audit,
    metrics: new RequestMetrics(metrics, clock, featurePaths(features)),
  })
  addProcessMetrics(metrics, deps.process.stats)
  addServerMetrics(metrics, { fairness, pipeline, audit, auditSink, connections })
  closers.add('event loop metrics', addEventLoopMetrics(metrics))
  const server = tlsServer(deps, pipeline, connections)
  port = await listen(server, options)
  closers.add('port', async (deadline) => {
    draining.abort()
    await pause(options.shutdownDelayDuration, deadline)
    const drained = pipeline.drain()
    await server.stop(deadline)
    await Promise.race([drained, pause(maxRecordMs, deadline)])
    log.info({}, 'stopped serving')
  })
  return {
    port,
    ready: () => {
      readiness.ready = true
    },
  }
}

const featurePaths = ({ virtual, serviceProxy }: OpenFeatures): string[] => [
  ...virtual.keys(),
  ...(serviceProxy?.subresources ?? []).map(pathOf),
]

function listen(server: TlsServer, { bindAddress, securePort }: ServerOptions): Promise<number> {
  const option = '--secure-port'
  const addresses = bindAddress.map((host) => ({ host, optional: host.includes(':'), option }))
  return server.listen(addresses, securePort)
}
