import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import { firstServiceAddress } from '../api/index.ts'
import {
  type Clock,
  Closers,
  type ClusterView,
  type Component,
  type Logger,
  MetricsRegistry,
  neverFails,
  WrongUsage,
} from '../core/index.ts'
import { checkPeriodically, type Pki } from '../pki/index.ts'
import { LocalCluster } from './backend/local.ts'
import {
  type Feature,
  type Listeners,
  type OpenFeatures,
  openFeatures,
  type ServerLocation,
} from './feature.ts'
import { allFeatures } from './features/index.ts'
import { addQuotaMetrics, type ProcessStats } from './metrics.ts'
import type { ServerOptions } from './options/options.ts'
import { problemsOfOptions } from './options/validate.ts'
import type { VersionInfo } from './routes/routes.ts'
import { afterNewCa, ensureAdminKubeconfig } from './startup/admin-kubeconfig.ts'
import { runControllers } from './startup/controllers.ts'
import { openIdentity, openStaticTokens } from './startup/identity.ts'
import { OldCertificates } from './startup/old-certificates.ts'
import { openBodies, openPort } from './startup/port.ts'
import { migrateSecrets } from './startup/sealed-values.ts'
import { advertiseAddress, urlOf } from './startup/serving-names.ts'
import { openClientCa, openServing, openState, type ServerProcess } from './startup/state.ts'
import {
  type ApiLocation,
  ensureApiService,
  ensureNamespaces,
  preparePolicy,
  watchRevocations,
} from './startup/system-objects.ts'

/** What an API server is created with. */
export interface ApiServerDeps {
  readonly options: ServerOptions
  readonly dataDirectory: string
  readonly version: VersionInfo
  readonly clock: Clock
  readonly log: Logger
  readonly process: ServerProcess & { readonly stats: ProcessStats; readonly stdout: Writable }
  /** Opened and started in this order; all features unless given. */
  readonly features?: readonly Feature[]
  /** Offers HTTP/2 or not, whatever the probe of the runtime finds; for tests. */
  readonly http2?: boolean
}

/** A server that serves requests. */
export interface Serving {
  /** For clients on this machine. */
  readonly url: string
  readonly port: number
  readonly adminKubeconfig: string
  readonly view: ClusterView
  readonly pki: Pki
  /** Further addresses on which it listens, by purpose, as `tunnel` for agents. */
  readonly listeners: Listeners
}

const minuteMs = 60_000

/** The API server on an embedded store, from its data directory to its port. */
export class ApiServer implements Component {
  readonly name = 'api-server'
  readonly failed = neverFails()
  readonly #deps: ApiServerDeps
  readonly #closers: Closers
  readonly #stopping = new AbortController()
  #serving: Serving | undefined

  constructor(deps: ApiServerDeps) {
    const problems = problemsOfOptions(deps.options)
    if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
    // Every feature listens to it; that is no leak.
    setMaxListeners(0, this.#stopping.signal)
    this.#deps = deps
    this.#closers = new Closers(deps.log)
  }

  /** Where it serves; only after `start`. */
  get serving(): Serving {
    if (!this.#serving) throw new Error('the server has not started')
    return this.#serving
  }

  /**
   * In this order: state is opened, features are opened, the cluster accepts writes, the port is opened, features are
   * started. So no write bypasses an admission plugin, and no request finds half of the server.
   */
  async start(): Promise<void> {
    const { options, clock, log } = this.#deps
    const { signal } = this.#stopping
    const base = await openBase(this.#deps, this.#closers, signal)
    const { cluster, pki } = base
    const features = await this.#openFeatures(base)
    const identity = await openIdentity({
      ...base,
      features,
      clientCa: await openClientCa(options, pki, { log, signal }),
    })
    cluster.acceptWrites({ ...features, ...identity, issueToken: features.issuer?.issue })
    await ensureNamespaces(cluster.view, signal)
    await base.removeSecrets()
    await preparePolicy(cluster, { log, signal }, this.#closers)
    const { certificates } = identity
    new OldCertificates({ pki, view: cluster.view, certificates, clock, log, signal }).start()
    const port = await openPort({ ...base, identity, features }, this.#closers)
    const listeners = await this.#announce(base, features, port.port)
    port.ready()
    const url = urlOf(advertiseAddress(options), port.port)
    this.#serving = {
      url,
      port: port.port,
      adminKubeconfig: base.directory.adminKubeconfig,
      view: cluster.view,
      pki,
      listeners,
    }
    log.info({ url }, 'serving')
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopping.abort()
    await this.#closers.closeAll(deadline)
  }

  #openFeatures(base: Base): Promise<OpenFeatures> {
    const { cluster, certificate } = base
    return openFeatures(this.#deps.features ?? allFeatures, {
      ...base,
      view: cluster.view,
      authorizer: cluster.authorizer,
      serving: certificate,
      onClose: (name, close) => this.#closers.add(name, close),
    })
  }

  /** Writes where the server is to the cluster and the administrator's kubeconfig, starts features and controllers. */
  async #announce(base: Base, features: OpenFeatures, port: number): Promise<Listeners> {
    const { options, clock, log } = this.#deps
    const { cluster, pki, serviceAddress, directory } = base
    const address = advertiseAddress(options)
    const { view } = cluster
    await this.#keepApiService(view, { serviceAddress, advertiseAddress: address, port })
    await this.#keepAdminKubeconfig(directory.adminKubeconfig, pki, urlOf(address, port))
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
    return features.start({ location: locationOf(options, port) })
  }

  /** Writes the Service of the API, and again when it was changed or deleted. */
  async #keepApiService(view: ClusterView, location: ApiLocation): Promise<void> {
    const { log } = this.#deps
    const { signal } = this.#stopping
    const ensure = () => ensureApiService(view, location, log, signal)
    await ensure()
    checkPeriodically(ensure, { name: 'API service', everyMs: minuteMs, log, signal })
  }

  /** Writes the administrator's kubeconfig, and again before its certificate expires. */
  async #keepAdminKubeconfig(path: string, pki: Pki, url: string): Promise<void> {
    const { clock, log } = this.#deps
    const ensure = () => ensureAdminKubeconfig(path, pki, url, clock)
    await ensure()
    checkPeriodically(ensure, { name: 'admin kubeconfig', log, signal: this.#stopping.signal })
    afterNewCa(pki, { name: 'admin kubeconfig', run: ensure, log })
  }
}

function locationOf(options: ServerOptions, port: number): ServerLocation {
  const host = options.externalHostname ?? advertiseAddress(options)
  return { host, port, url: urlOf(host, port) }
}

type Base = Awaited<ReturnType<typeof openBase>>

/** Everything that features build on. */
async function openBase(deps: ApiServerDeps, closers: Closers, signal: AbortSignal) {
  const { options, clock, log } = deps
  const state = await openState(deps.dataDirectory, deps, closers)
  const { pki, store, sealed } = state
  await pki.followClusterCa(signal)
  const [serviceCidr = '', ...moreCidrs] = options.serviceClusterIpRange
  const serviceCidrs = [serviceCidr, ...moreCidrs] as const
  const cluster = new LocalCluster({ store, clock, log, serviceCidrs, limits: options })
  const { view } = cluster
  const removeSecrets = await migrateSecrets({ store, view, log }, sealed, signal)
  const revocations = await watchRevocations(view, { clock, log }, closers)
  const serviceAddress = firstServiceAddress(serviceCidr)
  const certificate = await openServing(options, pki, serviceAddress, { clock, log })
  closers.add('serving certificate', () => certificate.close())
  afterNewCa(pki, { name: 'serving certificate', run: () => certificate.check(), log })
  const metrics = new MetricsRegistry()
  addQuotaMetrics(metrics, cluster.context.quota)
  return {
    ...deps,
    ...state,
    ...openBodies(options, closers),
    cluster,
    removeSecrets,
    revocations,
    serviceAddress,
    certificate,
    metrics,
    tokenFile: await openStaticTokens({ options, log, signal }),
    signal,
  }
}
