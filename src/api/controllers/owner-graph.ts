import type { Kind, KubeObject, OwnerReference } from '../../core/index.ts'
import type { GoneObject } from './controller.ts'

/** Holds a deleted object until its dependents have lost their reference to it. */
export const orphanFinalizer = 'orphan'
/** Holds a deleted object until the dependents that block it are gone. */
export const foregroundFinalizer = 'foregroundDeletion'

/** What the collector must remember of an object: whom it depends on, or that it waits for its dependents. */
export interface GraphNode {
  /** Names the object in the queue. */
  readonly id: string
  readonly uid: string
  readonly owners: readonly OwnerReference[]
  /** Deleted, and waits for its dependents. */
  readonly waits: boolean
}

/** Names an object of a kind in the queue. */
export const nodeId = (kind: Kind, { namespace = '', name }: GoneObject): string =>
  `${kind.resource}.${kind.group} ${namespace} ${name}`

/** Takes a name from the queue apart; only the name of an object may have spaces in it. */
export function parseNodeId(id: string): { resource: string; namespace: string; name: string } {
  const [resource = '', namespace = '', ...name] = id.split(' ')
  return { resource, namespace, name: name.join(' ') }
}

const waitsForDependents = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (metadata.finalizers ?? []).some(
    (finalizer) => finalizer === orphanFinalizer || finalizer === foregroundFinalizer,
  )

/** The API group in an `apiVersion`. */
export const groupOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''

/** The uids of the owners whose foreground deletion cannot end before the node is gone. */
const blockedBy = (node: GraphNode | undefined): Set<string> =>
  new Set(node?.owners.filter((owner) => owner.blockOwnerDeletion === true).map(({ uid }) => uid))

/** Who depends on whom. Objects that neither depend on others nor wait for dependents take no place in it. */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>()
  readonly #idsByUid = new Map<string, string>()
  readonly #dependents = new Map<string, Set<string>>()

  /** Takes in an object; returns the ids of the objects that this may concern. */
  put(kind: Kind, object: KubeObject): string[] {
    const id = nodeId(kind, object.metadata)
    const { uid = '', ownerReferences: owners = [] } = object.metadata
    const waits = waitsForDependents(object)
    const before = this.#nodes.get(id)
    const after = owners.length > 0 || waits ? { id, uid, owners, waits } : undefined
    if (JSON.stringify(before) === JSON.stringify(after)) return []
    if (before !== undefined) this.#forget(before)
    if (after !== undefined) this.#remember(after)
    // The object may have been made anew under the same name.
    const bereft = before !== undefined && before.uid !== uid ? this.dependentsOf(before.uid) : []
    return [
      ...(after === undefined ? [] : [id]),
      ...bereft.map((node) => node.id),
      ...this.#released(before, after),
    ]
  }

  /** Takes in that an object is gone; returns the ids of the objects that this may concern. */
  remove(kind: Kind, gone: GoneObject): string[] {
    const before = this.#nodes.get(nodeId(kind, gone))
    if (before !== undefined) this.#forget(before)
    const uids = new Set([gone.uid, before?.uid].filter((uid) => uid !== undefined))
    const dependents = [...uids].flatMap((uid) => this.dependentsOf(uid))
    return [...dependents.map(({ id }) => id), ...this.#released(before, undefined)]
  }

  /** The objects that refer to this owner. */
  dependentsOf(uid: string): GraphNode[] {
    const ids = this.#dependents.get(uid) ?? []
    return [...ids].flatMap((id) => this.#nodes.get(id) ?? [])
  }

  /**
   * The dependents without which a foreground deletion cannot end. A reference that has no more than
   * the uid in common with the owner counts for nothing: anybody could hold up a stranger's deletion.
   */
  blockersOf({ kind, apiVersion, metadata }: KubeObject): GraphNode[] {
    const { uid = '', namespace, name } = metadata
    const means = (owner: OwnerReference): boolean =>
      owner.blockOwnerDeletion === true &&
      owner.uid === uid &&
      owner.name === name &&
      owner.kind === kind &&
      groupOf(owner.apiVersion) === groupOf(apiVersion)
    return this.dependentsOf(uid).filter(
      ({ id, owners }) =>
        (namespace === undefined || parseNodeId(id).namespace === namespace) && owners.some(means),
    )
  }

  nodes(): Iterable<GraphNode> {
    return this.#nodes.values()
  }

  /** Owners that wait and whom this change may set free. */
  #released(before: GraphNode | undefined, after: GraphNode | undefined): string[] {
    const still = blockedBy(after)
    return [...blockedBy(before)]
      .filter((uid) => !still.has(uid))
      .flatMap((uid) => this.#idsByUid.get(uid) ?? [])
  }

  #remember(node: GraphNode): void {
    this.#nodes.set(node.id, node)
    this.#idsByUid.set(node.uid, node.id)
    for (const { uid } of node.owners) {
      const dependents = this.#dependents.get(uid) ?? new Set()
      this.#dependents.set(uid, dependents.add(node.id))
    }
  }

  #forget(node: GraphNode): void {
    this.#nodes.delete(node.id)
    this.#idsByUid.delete(node.uid)
    for (const { uid } of node.owners) {
      const dependents = this.#dependents.get(uid)
      dependents?.delete(node.id)
      if (dependents?.size === 0) this.#dependents.delete(uid)
    }
  }
}
