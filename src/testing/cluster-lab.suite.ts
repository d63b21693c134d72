import {
  type ClusterView,
  type Key,
  type Kind,
  type KubeObject,
  type ObjectList,
  type Query,
  wellKnownKinds,
} from '../core/index.ts'
import { namespaceObject, unique } from './drafts.suite.ts'

/** A cluster to put through the suite. */
export interface ClusterViewFixture {
  readonly view: ClusterView
  close(): Promise<void>
}

/** What only some clusters can show. */
export interface ClusterAbilities {
  /** Gives a version that history no longer reaches back to. */
  readonly expiredVersion?: (view: ClusterView) => Promise<string>
  /** A token that the cluster accepts, and whose it is. */
  readonly token?: () => { readonly value: string; readonly username: string }
  /** True when the cluster issues service account tokens. */
  readonly issuesTokens?: boolean
}

/** Never aborts. */
export const signal: AbortSignal = new AbortController().signal

/** A change that a watch tells. */
export interface Change {
  readonly type: string
  readonly object: KubeObject
}

/** A cluster that is opened before the cases run, and a namespace of theirs in it. */
export class ClusterLab {
  readonly namespace = unique('contract')
  readonly #open: () => Promise<ClusterViewFixture>
  #fixture: ClusterViewFixture | undefined

  constructor(open: () => Promise<ClusterViewFixture>) {
    this.#open = open
  }

  get view(): ClusterView {
    if (!this.#fixture) throw new Error('the cluster is not open')
    return this.#fixture.view
  }

  async open(): Promise<void> {
    this.#fixture = await this.#open()
    await this.create(namespaceObject(this.namespace))
  }

  async close(): Promise<void> {
    await this.#fixture?.close()
  }

  create = (object: KubeObject): Promise<KubeObject> =>
    this.view.write('create', object, {}, signal)

  update = (object: KubeObject, options = {}): Promise<KubeObject> =>
    this.view.write('update', object, options, signal)

  remove = (object: KubeObject, options = {}): Promise<KubeObject> =>
    this.view.write('delete', object, options, signal)

  get = (kind: Kind, key: Key): Promise<KubeObject | undefined> => this.view.get(kind, key, signal)

  list = (kind: Kind, query: Query): Promise<ObjectList> => this.view.list(kind, query, signal)

  namesIn = async (kind: Kind, query: Query): Promise<string[]> =>
    (await this.list(kind, query)).items.map(({ metadata }) => metadata.name)

  /** The version at which the cluster is. */
  now = async (): Promise<string> =>
    (await this.list(wellKnownKinds.configMap, { namespace: this.namespace })).resourceVersion

  /** The first `count` changes that a watch tells. */
  changesOf = async (
    kind: Kind,
    query: Query & { readonly from: string },
    count: number,
  ): Promise<Change[]> => {
    const stop = new AbortController()
    const seen: Change[] = []
    for await (const event of this.view.watch(kind, query, stop.signal)) {
      if (event.type === 'BOOKMARK') continue
      seen.push(event)
      if (seen.length === count) stop.abort()
    }
    return seen
  }
}

/** What changes are about, in short. */
export const brief = (changes: readonly Change[]): string[] =>
  changes.map(({ type, object }) => `${type} ${object.metadata.name}`)
