import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ClusterView, Kind, KubeObject, ObjectMeta, OwnerReference } from '../../core/index.ts'
import { event } from '../kinds/index.ts'
import {
  foregroundFinalizer,
  type GraphNode,
  graphNode,
  groupOf,
  nodeId,
  OwnerGraph,
  orphanFinalizer,
  parseNodeId,
} from './owner-graph.ts'
import { type Controller, type ControllerWatch, deleted, forEachAtOnce } from './run-controller.ts'

/** The references of an object by the state of their owners. */
interface OwnerStates {
  /** Owners that are there, or of which nothing can be known. */
  readonly solid: OwnerReference[]
  /** Owners that are gone. */
  readonly dangling: OwnerReference[]
  /** Owners that are deleted but wait for their dependents. */
  readonly waiting: OwnerReference[]
}

type OwnerState = keyof OwnerStates

/** After so many lookups, everybody else gets a turn: one object may name thousands of owners. */
const lookupsPerTurn = 64

/** Looks each owner of an object up; an owner is gone when its name is free or somebody else's. */
class OwnerLookup {
  readonly #view: ClusterView
  readonly #kinds: readonly Kind[]

  constructor(view: ClusterView, kinds: readonly Kind[]) {
    this.#view = view
    this.#kinds = kinds
  }

  async classify(object: KubeObject, signal: AbortSignal): Promise<OwnerStates> {
    const states: OwnerStates = { solid: [], dangling: [], waiting: [] }
    const namespace = object.metadata.namespace ?? ''
    for (const [index, reference] of (object.metadata.ownerReferences ?? []).entries()) {
      if ((index + 1) % lookupsPerTurn === 0) await nextTurn()
      states[await this.#stateOf(reference, namespace, signal)].push(reference)
    }
    return states
  }

  async #stateOf(
    reference: OwnerReference,
    namespace: string,
    signal: AbortSignal,
  ): Promise<OwnerState> {
    const group = groupOf(reference.apiVersion)
    const kind = this.#kinds.find((each) => each.group === group && each.kind === reference.kind)
    // Of a kind that is not served here nothing can be known, and an object outside of namespaces
    // cannot be owned from inside one: neither is a reason to delete anything.
    if (kind === undefined || (kind.namespaced && namespace === '')) return 'solid'
    const key = kind.namespaced ? { namespace, name: reference.name } : { name: reference.name }
    const owner = await this.#view.get(kind, key, signal)
    if (owner?.metadata.uid !== reference.uid) return 'dangling'
    const { deletionTimestamp, finalizers = [] } = owner.metadata
    const waits = deletionTimestamp !== undefined && finalizers.includes(foregroundFinalizer)
    return waits ? 'waiting' : 'solid'
  }
}

/** What the collector works with. */
export interface GarbageCollectorOptions {
  readonly view: ClusterView
  /** All kinds of the cluster. */
  readonly kinds: readonly Kind[]
}

const withMetadata = (object: KubeObject, change: Partial<ObjectMeta>): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, ...change },
})

const withoutFinalizer = (object: KubeObject, finalizer: string): KubeObject =>
  withMetadata(object, {
    finalizers: (object.metadata.finalizers ?? []).filter((name) => name !== finalizer),
  })

function withoutOwners(object: KubeObject, uids: ReadonlySet<string>): KubeObject {
  const owners = object.metadata.ownerReferences ?? []
  return withMetadata(object, { ownerReferences: owners.filter(({ uid }) => !uids.has(uid)) })
}

const uidsOf = (references: readonly OwnerReference[]): string[] => references.map(({ uid }) => uid)

class GarbageCollector {
  readonly #view: ClusterView
  readonly #kinds: ReadonlyMap<string, Kind>
  readonly #graph: OwnerGraph
  readonly #owners: OwnerLookup

  constructor({ view, kinds }: GarbageCollectorOptions, graph: OwnerGraph) {
    this.#view = view
    this.#kinds = new Map(
      kinds.map((kind) => [parseNodeId(nodeId(kind, { name: '' })).resource, kind]),
    )
    this.#graph = graph
    this.#owners = new OwnerLookup(view, kinds)
  }

  /** Does what the object's owners and finalizers ask for. */
  async look(id: string, signal: AbortSignal): Promise<void> {
    const object = await this.#read(id, signal)
    if (object === undefined) return
    const { deletionTimestamp, finalizers = [] } = object.metadata
    if (deletionTimestamp === undefined) await this.#collect(object, signal)
    else if (finalizers.includes(orphanFinalizer)) await this.#orphan(object, signal)
    else if (finalizers.includes(foregroundFinalizer)) await this.#deleteDependents(object, signal)
  }

  async #read(id: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { resource, namespace, name } = parseNodeId(id)
    const kind = this.#kinds.get(resource)
    if (kind === undefined) return undefined
    return this.#view.get(kind, kind.namespaced ? { namespace, name } : { name }, signal)
  }

  /** Deletes an object that has no owner left; takes dead references off one that has. */
  async #collect(object: KubeObject, signal: AbortSignal): Promise<void> {
    if ((object.metadata.ownerReferences ?? []).length === 0) return
    const { solid, dangling, waiting } = await this.#owners.classify(object, signal)
    const lost = [...dangling, ...waiting]
    if (lost.length === 0) return
    if (solid.length > 0) {
      await this.#update(withoutOwners(object, new Set(uidsOf(lost))), signal)
      return
    }
    const dependents = this.#graph.dependentsOf(object.metadata.uid ?? '')
    const inForeground = waiting.length > 0 && dependents.length > 0
    await this.#delete(
      inForeground ? await this.#prepareForeground(object, dependents, signal) : object,
      signal,
    )
  }

  /** Makes an object's deletion wait for its own dependents, as its owner's deletion waits for it. */
  #prepareForeground(
    object: KubeObject,
    dependents: readonly GraphNode[],
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { finalizers = [], ownerReferences = [] } = object.metadata
    // A dependent that waits as well may wait for this very object: somebody must give way.
    const mayBeCircle = dependents.some(({ waits }) => waits)
    return this.#update(
      withMetadata(object, {
        finalizers: [...new Set([...finalizers, foregroundFinalizer])],
        ownerReferences: mayBeCircle
          ? ownerReferences.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
          : ownerReferences,
      }),
      signal,
    )
  }

  async #orphan(owner: KubeObject, signal: AbortSignal): Promise<void> {
    const uid = owner.metadata.uid ?? ''
    await forEachAtOnce(this.#graph.dependentsOf(uid), async ({ id }) => {
      const dependent = await this.#read(id, signal)
      const refers = dependent?.metadata.ownerReferences?.some((each) => each.uid === uid)
      if (dependent && refers) await this.#update(withoutOwners(dependent, new Set([uid])), signal)
    })
    await this.#update(withoutFinalizer(owner, orphanFinalizer), signal)
  }

  async #deleteDependents(owner: KubeObject, signal: AbortSignal): Promise<void> {
    const uid = owner.metadata.uid ?? ''
    const living = this.#graph.dependentsOf(uid).filter(({ waits }) => !waits)
    await forEachAtOnce(living, ({ id }) => this.look(id, signal))
    if (this.#graph.blockersOf(owner).length > 0) return
    await this.#update(withoutFinalizer(owner, foregroundFinalizer), signal)
  }

  /** Fails with a conflict, and is tried again, when the object has changed since it was read. */
  #update(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#view.write('update', object, {}, signal)
  }

  async #delete(object: KubeObject, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = object.metadata
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    await deleted(this.#view.write('delete', object, preconditions, signal))
  }
}

/** Feeds one kind into the graph. Of objects that take no place in it nothing is cached. */
const graphWatch = (kind: Kind, graph: OwnerGraph): ControllerWatch<GraphNode> => ({
  kind,
  project: (object) => graphNode(kind, object),
  equals: isDeepStrictEqual,
  keysOf: ({ namespace, name, uid, after }) =>
    after ? graph.put(after) : graph.remove(nodeId(kind, { namespace, name }), uid),
  // Deletions of owners that take no place in the graph may have been missed.
  *keysOfRelist() {
    for (const { id } of graph.nodes()) yield id
  },
})

const isEvent = (kind: Kind): boolean => kind.kind === event.kind.kind

/**
 * Collects objects whose owners are gone, and carries out deletions that wait for dependents: orphan
 * lets them go, foreground deletes them first.
 */
export function createGarbageCollector(options: GarbageCollectorOptions): Controller {
  const graph = new OwnerGraph()
  const collector = new GarbageCollector(options, graph)
  return {
    name: 'garbage-collector',
    start({ watch }) {
      // Events are many, short-lived and, as in Kubernetes, not collected.
      for (const kind of options.kinds) if (!isEvent(kind)) watch(graphWatch(kind, graph))
      return async (id, signal) => {
        await collector.look(id, signal)
        return undefined
      }
    },
  }
}
