import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ApiError,
  apiVersionOf,
  type ClusterView,
  goQuote,
  type Key,
  type Kind,
  type KubeObject,
  type ObjectList,
  type Preconditions,
  type Query,
  type ReviewKind,
  type UserInfo,
  type WatchEvent,
  wellKnown,
} from '../../core/index.ts'
import type { KindDefinition, Subresource } from '../kinds/define-kind.ts'
import { definitionOfObject, definitionOfResource } from '../kinds/index.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { bytesPerTurn, listObjects } from './list.ts'
import { decodeObject, storeKey } from './object-bytes.ts'
import { requireSameUid } from './prepare-update.ts'
import type { RegistryContext } from './registry.ts'
import { parseResourceVersion } from './resource-version.ts'
import { updateObject } from './update.ts'
import { ChangeQueue, changeOf, watchObjects } from './watch.ts'

/** Answers a review on behalf of the cluster itself. */
export type Reviewer = (
  kind: ReviewKind,
  object: KubeObject,
  signal: AbortSignal,
) => Promise<KubeObject>

/** The identity under which the server's own parts act on its registry. */
export const serverUser: UserInfo = {
  username: 'system:apiserver',
  groups: [wellKnown.masters, wellKnown.authenticated],
}

/** What makes Endpoints and slices from Pods, and takes loopback from those of `workload run` only. */
const endpointMakers = ['endpoint-controller', 'endpointslice-controller.k8s.io']

/** Only the API itself and workloads of this machine may be found on it. */
const mayLoopback = ({ metadata: { namespace, name, labels = {} } }: KubeObject): boolean =>
  (namespace === 'default' && name === 'kubernetes') ||
  endpointMakers.includes(labels['endpoints.kubernetes.io/managed-by'] ?? '') ||
  endpointMakers.includes(labels['endpointslice.kubernetes.io/managed-by'] ?? '')

/** The cluster view on our own registry. */
export class LocalClusterView implements ClusterView {
  readonly #context: RegistryContext
  readonly #review: Reviewer

  constructor(context: RegistryContext, review: Reviewer) {
    this.#context = context
    this.#review = review
  }

  async get(kind: Kind, key: Key, signal: AbortSignal): Promise<KubeObject | undefined> {
    const definition = this.#definition(kind)
    await this.#context.store.freshen(signal)
    const record = this.#context.store.get(storeKey(definition.kind, key))
    return record && decodeObject(definition.kind, record)
  }

  async list(kind: Kind, query: Query, signal: AbortSignal): Promise<ObjectList> {
    const definition = this.#definition(kind)
    const page = await listObjects(this.#context, definition, query, signal)
    const items: KubeObject[] = []
    let bytes = 0
    for (const record of page.runs.flat()) {
      items.push(decodeObject(definition.kind, record))
      bytes += record.value.length
      if (bytes < bytesPerTurn) continue
      bytes = 0
      await nextTurn()
    }
    return { items, resourceVersion: String(page.revision) }
  }

  async *watch(
    kind: Kind,
    query: Query & { readonly from: string },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    const definition = this.#definition(kind)
    const queue = new ChangeQueue()
    const after = parseResourceVersion(query.from)
    const subscription = watchObjects(
      this.#context,
      definition,
      { ...query, after },
      {
        commit(events, selection) {
          for (const event of events) {
            const change = changeOf(event, selection)
            if (change) queue.push(change)
          }
        },
      },
    )
    const end = () => queue.close()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      for await (const { type, record } of queue) {
        if (signal.aborted) return
        yield { type, object: decodeObject(definition.kind, record) }
      }
    } finally {
      subscription.close()
      signal.removeEventListener('abort', end)
    }
  }

  async write(
    op: 'create' | 'update' | 'delete',
    object: KubeObject,
    options: { readonly subresource?: string } & Preconditions,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const definition = this.#definitionOf(object)
    const allowances = { loopbackEndpoints: mayLoopback(object) }
    const writing = { user: serverUser, dryRun: false, allowances, signal }
    if (op === 'create') {
      const created = await createObject(
        this.#context,
        definition,
        structuredClone(object),
        writing,
      )
      return created.object
    }
    const { resourceVersion, uid } = options
    const preconditions = {
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(uid !== undefined && { uid }),
    }
    if (op === 'delete') {
      const deletion = { ...writing, key: object.metadata, preconditions }
      return (await deleteObject(this.#context, definition, deletion)).object
    }
    const subresource = this.#subresource(definition, options.subresource)
    const sent = structuredClone(object)
    Object.assign(sent.metadata, preconditions)
    const updated = await updateObject(this.#context, definition, {
      ...writing,
      key: object.metadata,
      ...(subresource && { subresource }),
      mutate: (stored) => {
        requireSameUid(definition.kind, sent, stored)
        return structuredClone(sent)
      },
    })
    return updated.object
  }

  review(kind: ReviewKind, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#review(kind, object, signal)
  }

  #definition(kind: Kind): KindDefinition {
    const found = definitionOfResource(kind)
    if (!found)
      throw new ApiError(
        'NotFound',
        `this cluster does not serve ${kind.resource} of ${apiVersionOf(kind)}`,
      )
    return found
  }

  #definitionOf(object: KubeObject): KindDefinition {
    const found = definitionOfObject(object)
    if (!found)
      throw new ApiError(
        'NotFound',
        `no matches for kind ${goQuote(object.kind)} in version ${goQuote(object.apiVersion)}`,
      )
    return found
  }

  #subresource(definition: KindDefinition, name: string | undefined): Subresource | undefined {
    if (name === undefined || name === '') return undefined
    const found = definition.subresources.find((subresource) => subresource.name === name)
    if (!found)
      throw new ApiError('NotFound', `${definition.kind.resource} have no subresource ${name}`)
    return found
  }
}
