import {
  type ClusterView,
  hasReason,
  type Key,
  type Kind,
  type KubeObject,
  notFound,
  type ObjectList,
  type Preconditions,
  type Query,
  type ReviewKind,
  type WatchEvent,
} from '../core/index.ts'
import type { KubeClient, WriteOptions } from './kube-client.ts'
import { statedPreconditions } from './objects.ts'

/** How often a delete is tried again when others write in between. */
const deleteAttempts = 16

/** The cluster view on a Kubernetes API server. */
export class RemoteClusterView implements ClusterView {
  readonly #client: KubeClient
  readonly #bookmarks: boolean

  /** With `bookmarks: false` watches keep them to themselves. */
  constructor(client: KubeClient, options: { readonly bookmarks?: boolean } = {}) {
    this.#client = client
    this.#bookmarks = options.bookmarks ?? true
  }

  get(kind: Kind, key: Key, signal: AbortSignal): Promise<KubeObject | undefined> {
    return this.#client.get(kind, key, signal)
  }

  list(kind: Kind, query: Query, signal: AbortSignal): Promise<ObjectList> {
    return this.#client.list(kind, query, signal)
  }

  async *watch(
    kind: Kind,
    query: Query & { readonly from: string },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    for await (const event of this.#client.watch(kind, query, signal)) {
      if (this.#bookmarks || event.type !== 'BOOKMARK') yield event
    }
  }

  async write(
    op: 'create' | 'update' | 'delete',
    object: KubeObject,
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const kind = await this.#client.kindOf(object, signal)
    switch (op) {
      case 'create':
        return this.#client.create(kind, object, options, signal)
      case 'update':
        return this.#client.update(kind, object, options, signal)
      case 'delete':
        return this.#delete(kind, object.metadata, options, signal)
    }
  }

  review(kind: ReviewKind, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#client.review(kind, object, signal)
  }

  /** Reads first and deletes that very version: most answers to a delete do not say what was deleted. */
  async #delete(
    kind: Kind,
    key: Key,
    wanted: Preconditions,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    for (let attempt = 1; ; attempt++) {
      const last = await this.#client.get(kind, key, signal)
      if (!last) throw notFound(kind, key.name)
      const meant = { ...statedPreconditions(last.metadata), ...statedPreconditions(wanted) }
      try {
        return (await this.#client.delete(kind, key, meant, signal)) ?? last
      } catch (error) {
        const lostRace = hasReason(error, 'Conflict')
        const stillMeant =
          wanted.resourceVersion === undefined &&
          (wanted.uid === undefined || wanted.uid === last.metadata.uid)
        if (!lostRace || !stillMeant || attempt === deleteAttempts) throw error
      }
    }
  }
}
