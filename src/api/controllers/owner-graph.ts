import type { Key, Kind, KubeObject, OwnerReference } from '../../core/index.ts'

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
export const nodeId = (kind: Kind, { namespace = '', name }: Key): string =>
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

/** What the graph has of an object; nothing of one that neither depends on others nor waits for dependents. */
export function graphNode(kind: Kind, object: KubeObject): GraphNode | undefined {
  const { uid = '', ownerReferences: owners = [] } = object.metadata
  const waits = waitsForDependents(object)
  if (owners.length === 0 && !waits) return undefined
  return { id: nodeId(kind, object.metadata), uid, owners, waits }
}

/** Which objects depend on which owners. */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>()
  readonly #idsByUid = new Map<string, string>()
  readonly #dependents = new Map<string, Set<string>>()

  /** Puts a new or changed node in; returns the ids of the objects that this may concern. */
  put(node: GraphNode): string[] {
    const before = this.#nodes.get(node.id)
    if (before !== undefined) this.#forget(before)
    this.#remember(node)
    return [node.id, ...this.#released(before, node)]
  }

  /** Takes an object out, whether it is in the graph or not; returns the ids of the objects that this may concern. */
  remove(id: string, uid: string | undefined): string[] {
    const before = this.#nodes.get(id)
    if (before !== undefined) this.#forget(before)
    const dependents = uid === undefined ? [] : this.dependentsOf(uid)
    return [...dependents.map((node) => node.id), ...this.#released(before, undefined)]
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
