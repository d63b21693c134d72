import type { ServerResponse } from 'node:http'
import {
  answerReview,
  checkVirtual,
  LocalClusterView,
  openRegistry,
  type QuotaLimits,
  type RegistryContext,
  type ResourceApi,
  type ReviewSources,
  serverUser,
  type VirtualResource,
} from '../../api/index.ts'
import { nodeAuthorizer, RbacAuthorizer, superusers, union } from '../../authz/index.ts'
import {
  type Admission,
  ApiError,
  type AuthorizedRequest,
  type Authorizer,
  type Backend,
  badRequest,
  type Clock,
  type ClusterView,
  isProxied,
  type Logger,
  type RequestInfo,
  type UpgradingClient,
} from '../../core/index.ts'
import type { Store } from '../../storage/index.ts'
import { machineAuthorizer } from '../../workload/server/index.ts'
import type { ServiceProxyPart } from '../feature.ts'
import type { PathRoutes } from '../routes/route.ts'
import { admissionPlugins } from './admission.ts'

/** What a local cluster is opened with. */
export interface LocalClusterOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly serviceCidrs: readonly [string, ...string[]]
  readonly limits?: QuotaLimits
}

/** What writes and reviews need besides the cluster, known once all features are open. */
export interface LocalClusterDeps extends Pick<ReviewSources, 'authenticateToken' | 'issueToken'> {
  /** Admission plugins of features. */
  readonly admissions: readonly Admission[]
}

/** A cluster on our own registry. It can be read at once; it accepts writes and reviews after `acceptWrites`. */
export class LocalCluster {
  readonly context: RegistryContext
  readonly view: ClusterView
  readonly rbac: RbacAuthorizer
  readonly authorizer: Authorizer
  readonly #clock: Clock
  #reviews: ReviewSources | undefined

  constructor(options: LocalClusterOptions) {
    const { store, clock, log, serviceCidrs, limits } = options
    this.#clock = clock
    this.context = openRegistry({ store, clock, log, serviceCidrs, ...(limits && { limits }) })
    this.view = new LocalClusterView(this.context, async (kind, object, signal) =>
      answerReview({ ...object, kind }, serverUser, this.reviews, signal),
    )
    this.rbac = new RbacAuthorizer(this.view, log)
    this.authorizer = union([
      superusers, //                  members of system:masters
      nodeAuthorizer(this.view), //    nodes, for what runs on them
      machineAuthorizer(this.view), // machines of `workload run`, for what is their own
      this.rbac,
    ])
  }

  /** Accepts writes and reviews from now on; called once, when all features are open. */
  acceptWrites({ admissions: more, authenticateToken, issueToken }: LocalClusterDeps): void {
    const { view, authorizer, rbac } = this
    const clock = this.#clock
    this.#reviews = { authorizer, authenticateToken, issueToken, clock }
    this.context.admissions.set(admissionPlugins({ view, authorizer, rbac, clock, more }))
  }

  get reviews(): ReviewSources {
    if (this.#reviews) return this.#reviews
    throw new ApiError('ServiceUnavailable', 'the server is starting and serves no reviews yet')
  }
}

/** What the local backend passes requests to. */
export interface LocalBackendDeps {
  readonly cluster: Pick<LocalCluster, 'view' | 'authorizer'>
  readonly resources: ResourceApi
  readonly paths: PathRoutes
  readonly serviceProxy: ServiceProxyPart | undefined
}

/** The end of the pipeline on our own registry. */
export class LocalBackend implements Backend {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly #resources: ResourceApi
  readonly #paths: PathRoutes
  readonly #serviceProxy: ServiceProxyPart['proxy'] | undefined
  /** Scope and verbs of the proxied resources of the core group, by resource. */
  readonly #proxied: ReadonlyMap<string, Pick<VirtualResource, 'namespaced' | 'verbs'>>

  constructor({ cluster, resources, paths, serviceProxy }: LocalBackendDeps) {
    this.view = cluster.view
    this.authorizer = cluster.authorizer
    this.#resources = resources
    this.#paths = paths
    this.#serviceProxy = serviceProxy?.proxy
    this.#proxied = new Map(
      serviceProxy?.subresources.map(({ resource, verbs }) => [
        resource,
        { verbs, namespaced: resource !== 'nodes' },
      ]),
    )
  }

  owner(): 'here' {
    return 'here'
  }

  handle(
    request: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): void | Promise<void> {
    const { info } = request
    if (!info.isResourceRequest) return this.#paths.handle(request, response, signal)
    const proxy = this.#proxyOf(info)
    if (proxy) return proxy.serve(request, response, signal)
    return this.#resources.handle(request, response, signal)
  }

  upgrade(
    request: AuthorizedRequest,
    client: UpgradingClient,
    signal: AbortSignal,
  ): void | Promise<void> {
    const proxy = this.#proxyOf(request.info)
    if (!proxy) throw badRequest('this path cannot be upgraded')
    return proxy.upgrade(request, client, signal)
  }

  /** The service proxy, if the request is for it. Throws 404 or 405 for a scope or verb that it does not declare. */
  #proxyOf(info: RequestInfo): ServiceProxyPart['proxy'] | undefined {
    if (!isProxied(info) || info.group !== '' || info.version !== 'v1') return undefined
    const declared = this.#proxied.get(info.resource)
    if (!declared) return undefined
    checkVirtual(declared, info)
    return this.#serviceProxy
  }
}
