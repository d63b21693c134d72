import type { Writable } from 'node:stream'
import { firstServiceAddress, problemOfServiceRange, type ResourceHandler } from '../api/index.ts'
import { type Revocations, type TokenAuthenticator, withBaseGroup } from '../authn/index.ts'
import {
  type Clock,
  type ClusterView,
  type Component,
  type Logger,
  neverFails,
  WrongUsage,
} from '../core/index.ts'
import { checkPeriodically, type Pki } from '../pki/index.ts'
import { ensureAdminKubeconfig } from './composition/admin-kubeconfig.ts'
import { Closers } from './composition/closers.ts'
import { runControllers } from './composition/controllers.ts'
import { type Gate, openGate } from './composition/gate.ts'
import { openIdentity } from './composition/identity.ts'
import { type LocalCluster, openCluster } from './composition/open-cluster.ts'
import { preparePolicy, watchRevocations } from './composition/policy.ts'
import { advertiseAddress, urlOf } from './composition/serving-names.ts'
import { openClientCa, openServing, openState, type ServerProcess } from './composition/state.ts'
import {
  type ApiLocation,
  ensureApiService,
  ensureNamespaces,
} from './composition/system-objects.ts'
import type { ProcessStats } from './metrics/server-metrics.ts'
import { problemsOfServerOptions, type ServerOptions } from './options/index.ts'
import type { VersionInfo } from './paths/plain-documents.ts'
import type { PathRoute } from './paths/routes.ts'

/** What an API server is made of. */
export interface ApiServerParts {
  readonly options: ServerOptions
  readonly dataDirectory: string
  readonly version: VersionInfo
  readonly clock: Clock
  readonly log: Logger
  readonly process: ServerProcess & { readonly stats: ProcessStats; readonly stdout: Writable }
  /** What the features add. */
  readonly tokens?: readonly TokenAuthenticator[]
  readonly routes?: readonly PathRoute[]
  readonly extensions?: ReadonlyMap<string, ResourceHandler>
}

/** A server that answers requests. */
export interface Serving {
  /** For clients on this machine. */
  readonly url: string
  readonly port: number
  readonly adminKubeconfig: string
  readonly view: ClusterView
  readonly pki: Pki
}

const minuteMs = 60_000

/** The API server on an embedded store, from its data directory to its port. */
export class ApiServer implements Component {
  readonly name = 'api-server'
  readonly failed = neverFails()
  readonly #parts: ApiServerParts
  readonly #closers: Closers
  readonly #ending = new AbortController()
  #serving: Serving | undefined

  constructor(parts: ApiServerParts) {
    const problems = [
      ...problemsOfServerOptions(parts.options),
      ...parts.options.serviceClusterIpRange.flatMap((cidr) => problemOfServiceRange(cidr) ?? []),
    ]
    if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
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
    const state = await openState(this.#parts.dataDirectory, this.#parts, this.#closers)
    const { pki, store, directory } = state
    const identity = await openIdentity({
      options,
      clientCa: await openClientCa(options, pki, { log, signal: this.#ending.signal }),
      tokens: this.#parts.tokens ?? [],
      clock,
      log,
      signal: this.#ending.signal,
    })
    const [serviceCidr = '', ...moreCidrs] = options.serviceClusterIpRange
    let revocations: Revocations | undefined
    const cluster = openCluster({
      store,
      clock,
      log,
      serviceCidrs: [serviceCidr, ...moreCidrs],
      authenticateToken: async (token, _audiences, signal) => {
        const found = await identity.bearer.authenticateToken(token, signal)
        if (!found) return undefined
        // Whoever is refused here must not be vouched for to others.
        revocations?.check(found)
        return withBaseGroup(found)
      },
    })
    await ensureNamespaces(cluster.view, this.#ending.signal)
    await preparePolicy(cluster, { log, signal: this.#ending.signal }, this.#closers)
    revocations = await watchRevocations(cluster.view, { clock, log }, this.#closers)
    const serviceAddress = firstServiceAddress(serviceCidr)
    const certificate = await openServing(options, pki, serviceAddress, { clock, log })
    this.#closers.add('serving certificate', () => certificate.close())
    const gate = await openGate(
      { ...this.#parts, directory, identity, cluster, revocations, certificate },
      this.#closers,
    )
    await this.#announce(cluster, gate, { pki, serviceAddress, path: directory.adminKubeconfig })
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#ending.abort()
    await this.#closers.closeAll(deadline)
  }

  /** Tells the cluster and the administrator where the server is, and starts the controllers. */
  async #announce(
    { view }: LocalCluster,
    gate: Gate,
    facts: { readonly pki: Pki; readonly serviceAddress: string; readonly path: string },
  ): Promise<void> {
    const { options, clock, log } = this.#parts
    const { pki, serviceAddress, path } = facts
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
        rootCaPem: () => pki.clusterCa.bundlePem,
        eventTtlMs: options.eventTtl,
      },
      controllers.signal,
    )
    this.#closers.add('controllers', async () => {
      controllers.abort()
      await running
    })
    gate.ready()
    this.#serving = { url, port, adminKubeconfig: path, view, pki }
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
  }
}
