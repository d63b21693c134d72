import type { ClusterView, Kind, KubeObject, OwnerReference } from '../../../core/index.ts'
import { foregroundFinalizer, groupOf } from './owner-graph.ts'

/** The references of an object by the state of their owners. */
export interface OwnerStates {
  /** Owners that are there, or of which nothing can be known. */
  readonly solid: OwnerReference[]
  /** Owners that are gone. */
  readonly dangling: OwnerReference[]
  /** Owners that are deleted but wait for their dependents. */
  readonly waiting: OwnerReference[]
}

type OwnerState = keyof OwnerStates

/** Looks each owner of an object up; an owner is gone when its name is free or somebody else's. */
export class OwnerLookup {
  readonly #view: ClusterView
  readonly #kinds: readonly Kind[]

  constructor(view: ClusterView, kinds: readonly Kind[]) {
    this.#view = view
    this.#kinds = kinds
  }

  async classify(object: KubeObject, signal: AbortSignal): Promise<OwnerStates> {
    const states: OwnerStates = { solid: [], dangling: [], waiting: [] }
    const namespace = object.metadata.namespace ?? ''
    for (const reference of object.metadata.ownerReferences ?? []) {
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
