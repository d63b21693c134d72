import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import { firstServiceAddress, problemOfServiceRange, type RequestBodies } from '../api/index.ts'
import { completeIdentity, type Revocations } from '../authn/index.ts'
import {
  type Clock,
  Closers,
  type ClusterView,
  type Component,
  type Logger,
  MetricsRegistry,
  neverFails,
  notServed,
  WrongUsage,
} from '../core/index.ts'
import {
  checkPeriodically,
  type Pki,
  type ServingCertificate,
  type ServingMaterial,
} from '../pki/index.ts'
import { type LocalCluster, openCluster } from './backend/local.ts'
import { type Feature, type OpenFeatures, openFeatures, type ServerLocation } from './feature.ts'
import { allFeatures } from './features/index.ts'
import { addQuotaMetrics, type ProcessStats } from './metrics.ts'
import { problemsOfServerOptions, type ServerOptions } from './options/options.ts'
import type { VersionInfo } from './routes/routes.ts'
import { afterNewCa, ensureAdminKubeconfig } from './startup/admin-kubeconfig.ts'
import { runControllers } from './startup/controllers.ts'
import { type Identity, openIdentity } from './startup/identity.ts'
import { OldCertificates } from './startup/old-certificates.ts'
import { type Gate, openBodies, openGate } from './startup/port.ts'
import { migrateSecrets } from './startup/sealed-values.ts'
import { advertiseAddress, urlOf } from './startup/serving-names.ts'
import {
  openClientCa,
  openServing,
  openState,
  type ServerProcess,
  type ServerState,
} from './startup/state.ts'
import {
  type ApiLocation,
  ensureApiService,
  ensureNamespaces,
  preparePolicy,
  watchRevocations,
} from './startup/system-objects.ts'

/** What an API server is made of. */
export interface ApiServerParts {
  readonly options: ServerOptions
  readonly dataDirectory: string
  readonly version: VersionInfo
  readonly clock: Clock
  readonly log: Logger
  readonly process: ServerProcess & { readonly stats: ProcessStats; readonly stdout: Writable }
  /** Opened in this order; all there are unless given. */
  readonly features?: readonly Feature[]
  /** Offers HTTP/2 or not, whatever the probe of the runtime finds; for tests. */
  readonly http2?: boolean
}

/** A server that answers requests. */
export interface Serving {
  /** For clients on this machine. */
  readonly url: string
  readonly port: number
  readonly adminKubeconfig: string
  readonly view: ClusterView
  readonly pki: Pki
  /** What else listens where, by purpose, as `tunnel` for agents. */
  readonly places: Readonly<Record<string, string>>
}

const minuteMs = 60_000

/** What the cluster asks back for and what can only be opened after it. */
interface LateParts {
  identity?: Identity
  revocations?: Revocations
  features?: OpenFeatures
}

/** The API server on an embedded store, from its data directory to its port. */
export class ApiServer implements Component {
  readonly name = 'api-server'
  readonly failed = neverFails()
  readonly #parts: ApiServerParts
  readonly #closers: Closers
  readonly #ending = new AbortController()
  #serving: Serving | undefined
  #port: number | undefined
  #certificate: ServingCertificate | undefined

  constructor(parts: ApiServerParts) {
    const problems = [
      ...problemsOfServerOptions(parts.options),
      ...parts.options.serviceClusterIpRange.flatMap((cidr) => problemOfServiceRange(cidr) ?? []),
    ]
    if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
    // Every feature listens to it; that is no leak.
    setMaxListeners(0, this.#ending.signal)
    this.#parts = parts
    this.#closers = new Closers(parts.log)
  }

  /** Where it serves; only after `start`. */
  get serving(): Serving {
    if (!this.#serving) throw new Error('the server has not started')
    return this.#serving
  }

  async start(): Promise<void> {
    const { options, clock, log } = this.#parts
    const { signal } = this.#ending
    const state = await openState(this.#parts.dataDirectory, this.#parts, this.#closers)
    const { pki, directory } = state
    await pki.followClusterCa(signal)
    const [serviceCidr = ''] = options.serviceClusterIpRange
    const known: LateParts = {}
    const cluster = this.#openCluster(state, known)
    await ensureNamespaces(cluster.view, signal)
    await migrateSecrets({ store: state.store, view: cluster.view, log }, state.sealed, signal)
    await preparePolicy(cluster, { log, signal }, this.#closers)
    const revocations = await watchRevocations(cluster.view, { clock, log }, this.#closers)
    const registry = new MetricsRegistry()
    addQuotaMetrics(registry, cluster.context.quota)
    const work = openBodies(options, this.#closers)
    const made = { ...work, known, revocations }
    const features = await this.#openFeatures(cluster, state, registry, made)
    const old = new OldCertificates({ pki, view: cluster.view, clock, log, signal })
    old.start()
    const identity = await openIdentity({
      options,
      onCertificate: (certificate, socket) => old.saw(certificate, socket),
      clientCa: await openClientCa(options, pki, { log, signal }),
      tokens: features.tokens,
      anonymousPaths: features.anonymousPaths,
      apiAudiences: features.apiAudiences,
      clock,
      log,
      signal,
    })
    Object.assign(known, { identity, revocations, features })
    const serviceAddress = firstServiceAddress(serviceCidr)
    const certificate = await openServing(options, pki, serviceAddress, { clock, log })
    this.#certificate = certificate
    this.#closers.add('serving certificate', () => certificate.close())
    afterNewCa(pki, { name: 'serving certificate', run: () => certificate.check(), log })
    const gate = await openGate(
      {
        ...this.#parts,
        directory,
        identity,
        cluster,
        revocations,
        certificate,
        features,
        registry,
        ...work,
      },
      this.#closers,
    )
    this.#port = gate.port
    await this.#announce(cluster, gate, {
      pki,
      serviceAddress,
      path: directory.adminKubeconfig,
      features,
    })
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#ending.abort()
    await this.#closers.closeAll(deadline)
  }

  #openCluster({ store }: ServerState, known: LateParts): LocalCluster {
    const { options, clock, log } = this.#parts
    const [serviceCidr = '', ...moreCidrs] = options.serviceClusterIpRange
    return openCluster({
      store,
      clock,
      log,
      serviceCidrs: [serviceCidr, ...moreCidrs],
      limits: options,
      issueToken: async (call, signal) => {
        if (!known.features?.issueToken) throw notServed()
        return known.features.issueToken(call, signal)
      },
      authenticateToken: async (token, audiences, signal) => {
        const found = await known.identity?.bearer.authenticateToken(token, signal, audiences)
        if (!found) return undefined
        // Whoever is refused here must not be vouched for to others.
        known.revocations?.check(found)
        return completeIdentity(found)
      },
    })
  }

  async #openFeatures(
    cluster: LocalCluster,
    { directory, pki, sealed }: ServerState,
    metrics: MetricsRegistry,
    made: {
      readonly known: LateParts
      readonly revocations: Revocations
      readonly bodies: RequestBodies
    },
  ): Promise<OpenFeatures> {
    const { options, version, clock, log } = this.#parts
    const { known, revocations, bodies } = made
    const features = await openFeatures(this.#parts.features ?? allFeatures, {
      options,
      version,
      directory,
      pki,
      sealed,
      view: cluster.view,
      authorizer: cluster.authorizer,
      revocations,
      metrics,
      clock,
      log,
      serving: () => this.#servingMaterial(),
      bodies,
      authenticate: async (request, signal) => {
        const found = await known.identity?.authenticator.authenticate(request, signal)
        if (found) revocations.check(found)
        return found
      },
      fileToken: (id) => known.identity?.fileToken(id),
      location: () => this.#location(),
      signal: this.#ending.signal,
      onClose: (name, close) => this.#closers.add(name, close),
    })
    cluster.addAdmissions(features.admissions)
    return features
  }

  #servingMaterial(): ServingMaterial {
    if (!this.#certificate) throw new Error('the serving certificate is not read yet')
    return this.#certificate.current
  }

  #location(): ServerLocation {
    const port = this.#port
    if (port === undefined) throw new Error('the port is not open yet')
    const host = this.#parts.options.externalHostname ?? advertiseAddress(this.#parts.options)
    return { host, port, url: urlOf(host, port) }
  }

  /** Tells the cluster and the administrator where the server is, and starts the controllers. */
  async #announce(
    { view }: LocalCluster,
    gate: Gate,
    facts: {
      readonly pki: Pki
      readonly serviceAddress: string
      readonly path: string
      readonly features: OpenFeatures
    },
  ): Promise<void> {
    const { options, clock, log } = this.#parts
    const { pki, serviceAddress, path, features } = facts
    const { port } = gate
    const location = { serviceAddress, advertiseAddress: advertiseAddress(options), port }
    await this.#keepApiService(view, location)
    const url = urlOf(advertiseAddress(options), port)
    await this.#keepAdminKubeconfig(path, pki, url)
    const controllers = new AbortController()
    const running = runControllers(
      {
        view,
        clock,
        log,
        roots: {
          pem: () => pki.clusterCa.bundlePem,
          onNew: (listener) => pki.onNewClusterCa(listener),
        },
        eventTtlMs: options.eventTtl,
        more: features.controllers,
      },
      controllers.signal,
    )
    this.#closers.add('controllers', async () => {
      controllers.abort()
      await running
    })
    await features.listening()
    gate.ready()
    this.#serving = { url, port, adminKubeconfig: path, view, pki, places: features.places() }
    log.info({ url }, 'serving')
  }

  /** Writes the Service of the API, and again when somebody has changed or deleted it. */
  async #keepApiService(view: ClusterView, location: ApiLocation): Promise<void> {
    const { log } = this.#parts
    const { signal } = this.#ending
    const ensure = () => ensureApiService(view, location, log, signal)
    await ensure()
    checkPeriodically(ensure, { name: 'API service', everyMs: minuteMs, log, signal })
  }

  /** Writes the administrator's kubeconfig, and again whenever its certificate nears its end. */
  async #keepAdminKubeconfig(path: string, pki: Pki, url: string): Promise<void> {
    const { clock, log } = this.#parts
    const ensure = () => ensureAdminKubeconfig(path, pki, url, clock)
    await ensure()
    checkPeriodically(ensure, { name: 'admin kubeconfig', log, signal: this.#ending.signal })
    afterNewCa(pki, { name: 'admin kubeconfig', run: ensure, log })
  }
}
