import { createInformer, type Informer } from '../../client/index.ts'
import {
  type ClusterView,
  type Kind,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import { fieldsAt, listAt } from './fields.ts'

/** Where the proxy looks up the target of a request. */
export interface TargetSource {
  get(
    kind: Kind,
    key: { namespace: string; name: string },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined>
  /** The slices of a Service. */
  slices(namespace: string, service: string, signal: AbortSignal): Promise<readonly KubeObject[]>
}

/** What the cache of targets works with. */
export interface TargetCacheOptions {
  readonly view: ClusterView
  readonly log: Logger
  readonly signal: AbortSignal
}

const serviceLabel = 'kubernetes.io/service-name'

/**
 * Looks targets up in informers, and requests them from the cluster while a watch is down: the address of a deleted Pod
 * may belong to another one by then.
 */
export class TargetCache implements TargetSource {
  readonly #view: ClusterView
  readonly #services: Informer
  readonly #pods: Informer
  readonly #slices: Informer

  private constructor(options: TargetCacheOptions) {
    const { service, pod, endpointSlice } = wellKnownKinds
    this.#view = options.view
    this.#services = createInformer({ ...options, kind: service })
    this.#pods = createInformer({ ...options, kind: pod, project: podAddresses })
    this.#slices = createInformer({
      ...options,
      kind: endpointSlice,
      index: ({ metadata }) => [
        `${metadata.namespace ?? ''}/${metadata.labels?.[serviceLabel] ?? ''}`,
      ],
    })
  }

  /** Resolves when all objects are cached. */
  static async open(options: TargetCacheOptions): Promise<TargetCache> {
    const targets = new TargetCache(options)
    const informers = [targets.#services, targets.#pods, targets.#slices]
    await Promise.all(informers.map(({ synced }) => synced))
    return targets
  }

  async get(
    kind: Kind,
    key: { namespace: string; name: string },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const informer = this.#informerOf(kind)
    return informer?.watching ? informer.get(key) : this.#view.get(kind, key, signal)
  }

  async slices(
    namespace: string,
    service: string,
    signal: AbortSignal,
  ): Promise<readonly KubeObject[]> {
    if (this.#slices.watching) return [...this.#slices.byIndex(`${namespace}/${service}`)]
    const query = { namespace, labelSelector: `${serviceLabel}=${service}` }
    return (await this.#view.list(wellKnownKinds.endpointSlice, query, signal)).items
  }

  #informerOf(kind: Kind): Informer | undefined {
    if (kind === wellKnownKinds.service) return this.#services
    return kind === wellKnownKinds.pod ? this.#pods : undefined
  }
}

/** The ports and addresses of a Pod: a cluster may have many Pods. */
const podAddresses = ({ apiVersion, kind, metadata, ...rest }: KubeObject): KubeObject => ({
  apiVersion,
  kind,
  metadata,
  spec: {
    containers: listAt(fieldsAt(rest, 'spec'), 'containers').map(({ ports }) => ({ ports })),
  },
  status: {
    podIP: fieldsAt(rest, 'status')['podIP'],
    podIPs: fieldsAt(rest, 'status')['podIPs'],
  },
})
