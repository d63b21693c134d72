import { onTestFinished } from 'vitest'
import {
  type ClusterView,
  type Key,
  type Kind,
  type KubeObject,
  type Query,
  silentLogger,
  systemClock,
} from '../../core/index.ts'
import { openMemoryStore } from '../../storage/index.ts'
import { kindDefinitions, namespace } from '../kinds/index.ts'
import type { PropagationPolicy } from '../registry/delete.ts'
import { deleteObject } from '../registry/delete.ts'
import { LocalClusterView, serverUser } from '../registry/local-cluster-view.ts'
import { encodeObject, storeKey } from '../registry/object-bytes.ts'
import { openRegistry } from '../registry/open-registry.ts'
import type { RegistryContext } from '../registry/registry.ts'
import { type Controller, runController } from './run-controller.ts'

/** All kinds of the registry. */
export const allKinds: readonly Kind[] = kindDefinitions.map(({ kind }) => kind)

/** A real registry on a store in memory, with controllers running on it until the test ends. */
export class LocalCluster {
  readonly view: ClusterView
  /** Writes so far, as `verb Kind name`. */
  readonly writes: string[] = []
  /** Runs before each write of a controller. */
  beforeWrite: (() => Promise<void>) | undefined
  readonly signal: AbortSignal
  readonly #store = openMemoryStore()
  readonly #context: RegistryContext
  readonly #stop = new AbortController()

  private constructor() {
    this.#context = openRegistry({
      store: this.#store,
      clock: systemClock,
      serviceCidrs: ['10.96.0.0/16'],
      admissions: [],
    })
    const view = new LocalClusterView(this.#context, async (_kind, object) => object)
    this.view = {
      get: (...args) => view.get(...args),
      list: (...args) => view.list(...args),
      watch: (...args) => view.watch(...args),
      review: (...args) => view.review(...args),
      write: async (op, object, ...rest) => {
        this.writes.push(`${op} ${object.kind} ${object.metadata.name}`)
        await this.beforeWrite?.()
        return view.write(op, object, ...rest)
      },
    }
    this.signal = this.#stop.signal
  }

  static async open(...namespaces: string[]): Promise<LocalCluster> {
    const cluster = new LocalCluster()
    for (const name of namespaces) {
      await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    }
    return cluster
  }

  /** Starts controllers; the end of the test stops them and waits until they have ended. */
  run(...controllers: readonly Controller[]): void {
    const running = controllers.map((controller) =>
      runController(
        controller,
        { view: this.view, log: silentLogger, clock: systemClock },
        this.signal,
      ),
    )
    onTestFinished(async () => {
      this.#stop.abort()
      await Promise.all(running)
    })
  }

  create(object: KubeObject): Promise<KubeObject> {
    return this.view.write('create', object, {}, this.signal)
  }

  /** Stores an object past all checks, as if its creation had been under way for long. */
  async smuggle(kind: Kind, object: KubeObject): Promise<void> {
    await this.#store.create(storeKey(kind, object.metadata), encodeObject(object))
  }

  /** Changes an object; `subresource` says which part counts. */
  async change(
    kind: Kind,
    key: Key,
    change: (object: KubeObject) => void,
    subresource?: string,
  ): Promise<KubeObject> {
    const object = await this.view.get(kind, key, this.signal)
    if (object === undefined) throw new Error(`no ${kind.kind} ${key.name}`)
    change(object)
    return this.view.write('update', object, subresource ? { subresource } : {}, this.signal)
  }

  delete(kind: Kind, key: Key, propagationPolicy?: PropagationPolicy): Promise<unknown> {
    const definition = kindDefinitions.find((each) => each.kind === kind)
    if (definition === undefined) throw new Error(`no kind ${kind.kind}`)
    return deleteObject(this.#context, definition, {
      user: serverUser,
      dryRun: false,
      key,
      signal: this.signal,
      ...(propagationPolicy && { propagationPolicy }),
    })
  }

  get(kind: Kind, key: Key): Promise<KubeObject | undefined> {
    return this.view.get(kind, key, this.signal)
  }

  async list(kind: Kind, query: Query = {}): Promise<KubeObject[]> {
    return (await this.view.list(kind, query, this.signal)).items
  }

  /** Waits, change by change, until the objects of a kind are as the test wants them. */
  async until(
    kind: Kind,
    query: Query,
    isRight: (objects: KubeObject[]) => boolean,
  ): Promise<KubeObject[]> {
    const { items, resourceVersion } = await this.view.list(kind, query, this.signal)
    const known = new Map(items.map((item) => [item.metadata.uid, item]))
    if (isRight([...known.values()])) return [...known.values()]
    const stop = new AbortController()
    const from = { ...query, from: resourceVersion }
    for await (const { type, object } of this.view.watch(kind, from, stop.signal)) {
      if (type === 'DELETED') known.delete(object.metadata.uid)
      else known.set(object.metadata.uid, object)
      if (isRight([...known.values()])) break
    }
    stop.abort()
    return [...known.values()]
  }

  /** Waits until an object is there and as the test wants it. */
  async untilObject(
    kind: Kind,
    key: Key,
    isRight: (object: KubeObject) => boolean = () => true,
  ): Promise<KubeObject> {
    const query = {
      ...(key.namespace !== undefined && { namespace: key.namespace }),
      fieldSelector: `metadata.name=${key.name}`,
    }
    const [found] = await this.until(
      kind,
      query,
      ([object]) => object !== undefined && isRight(object),
    )
    if (found === undefined) throw new Error(`no ${kind.kind} ${key.name}`)
    return found
  }

  /** Waits until an object is gone. */
  async untilGone(kind: Kind, key: Key): Promise<void> {
    const query = {
      ...(key.namespace !== undefined && { namespace: key.namespace }),
      fieldSelector: `metadata.name=${key.name}`,
    }
    await this.until(kind, query, (objects) => objects.length === 0)
  }

  untilNamespaceGone(name: string): Promise<void> {
    return this.untilGone(namespace.kind, { name })
  }
}
