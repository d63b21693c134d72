import { type Following, follow } from '../../client/index.ts'
import {
  type ClusterView,
  type Kind,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import { fieldsAt, listAt } from './fields.ts'

/** Where the proxy looks up what a request is for. */
export interface TargetSource {
  get(
    kind: Kind,
    key: { namespace: string; name: string },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined>
  /** The slices of a Service. */
  slices(namespace: string, service: string, signal: AbortSignal): Promise<readonly KubeObject[]>
}

const serviceLabel = 'kubernetes.io/service-name'

/** What follows a cluster. */
interface SourceParts {
  readonly view: ClusterView
  readonly log: Logger
  readonly signal: AbortSignal
}

/** The objects of a kind by namespace and name, as new as their watch. */
class Followed {
  readonly #objects = new Map<string, KubeObject>()
  readonly #following: Following

  constructor({ view, log, signal }: SourceParts, kind: Kind, listener: Listener) {
    const keep = (object: KubeObject, kept?: KubeObject): void => {
      const key = keyOf(object.metadata)
      listener.changed(this.#objects.get(key), kept)
      if (kept) this.#objects.set(key, kept)
      else this.#objects.delete(key)
    }
    this.#following = follow(
      { view, kind, log },
      { put: (object) => keep(object, listener.reduce(object)), remove: (object) => keep(object) },
      signal,
    )
  }

  get synced(): Promise<void> {
    return this.#following.synced
  }

  /** A lost watch shows the past: the address of a Pod that is gone may be somebody else's by now. */
  get isCurrent(): boolean {
    return this.#following.watching
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`)
  }
}

interface Listener {
  /** What is kept of an object. */
  readonly reduce: (object: KubeObject) => KubeObject
  readonly changed: (before: KubeObject | undefined, after: KubeObject | undefined) => void
}

const keyOf = ({ namespace = '', name }: KubeObject['metadata']): string => `${namespace}/${name}`

const plain: Listener = { reduce: (object) => object, changed: () => {} }

/** A cluster may have many Pods; of each only its place matters here. */
const podPlaces: Listener = {
  ...plain,
  reduce: ({ apiVersion, kind, metadata, ...rest }) => ({
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
  }),
}

/** Looks things up in memory while the watches of the cluster are open, and asks for them while they are not. */
export class WatchedTargets implements TargetSource {
  readonly #view: ClusterView
  readonly #services: Followed
  readonly #pods: Followed
  readonly #slices: Followed
  readonly #slicesOf = new Map<string, Set<KubeObject>>()

  private constructor(parts: SourceParts) {
    this.#view = parts.view
    this.#services = new Followed(parts, wellKnownKinds.service, plain)
    this.#pods = new Followed(parts, wellKnownKinds.pod, podPlaces)
    this.#slices = new Followed(parts, wellKnownKinds.endpointSlice, {
      ...plain,
      changed: (before, after) => this.#index(before, after),
    })
  }

  /** Resolves once everything has been seen. */
  static async open(parts: SourceParts): Promise<WatchedTargets> {
    const targets = new WatchedTargets(parts)
    await Promise.all([targets.#services.synced, targets.#pods.synced, targets.#slices.synced])
    return targets
  }

  async get(
    kind: Kind,
    key: { namespace: string; name: string },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const followed =
      kind === wellKnownKinds.service
        ? this.#services
        : kind === wellKnownKinds.pod
          ? this.#pods
          : undefined
    if (followed?.isCurrent) return followed.get(key.namespace, key.name)
    return this.#view.get(kind, key, signal)
  }

  async slices(
    namespace: string,
    service: string,
    signal: AbortSignal,
  ): Promise<readonly KubeObject[]> {
    if (this.#slices.isCurrent) return [...(this.#slicesOf.get(`${namespace}/${service}`) ?? [])]
    const query = { namespace, labelSelector: `${serviceLabel}=${service}` }
    return (await this.#view.list(wellKnownKinds.endpointSlice, query, signal)).items
  }

  #index(before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (before) {
      const key = serviceOf(before)
      const known = this.#slicesOf.get(key)
      known?.delete(before)
      if (known?.size === 0) this.#slicesOf.delete(key)
    }
    if (!after) return
    const key = serviceOf(after)
    const known = this.#slicesOf.get(key)
    if (known) known.add(after)
    else this.#slicesOf.set(key, new Set([after]))
  }
}

const serviceOf = ({ metadata }: KubeObject): string =>
  `${metadata.namespace ?? ''}/${metadata.labels?.[serviceLabel] ?? ''}`
