import type { Key, Kind, KubeObject, Query } from '../../core/index.ts'
import type { Watch } from './controller.ts'

/** What to mirror, what to keep of it, and what changes of it ask for. */
export interface MirrorOptions<T> {
  readonly kind: Kind
  readonly query?: Query
  /** The part of an object that matters; changes of other parts go unnoticed. */
  readonly project: (object: KubeObject) => T
  /** The keys to reconcile when an object comes, changes or goes. */
  readonly keysOf: (change: MirrorChange<T>) => Iterable<string>
}

/** A change of one object; `undefined` stands for its absence. */
export interface MirrorChange<T> {
  readonly namespace: string
  readonly name: string
  readonly before: T | undefined
  readonly after: T | undefined
}

interface Entry<T> {
  readonly version: string | undefined
  readonly value: T
}

/** Versions are numbers in every store there is; where one is not, the newer arrival counts. */
const isOlder = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b)

/** Keeps what matters of the objects of one kind, in memory, by namespace and name. */
export class Mirror<T> implements Watch {
  readonly kind: Kind
  readonly query: Query
  readonly #options: MirrorOptions<T>
  readonly #namespaces = new Map<string, Map<string, Entry<T>>>()

  constructor(options: MirrorOptions<T>) {
    this.#options = options
    this.kind = options.kind
    this.query = options.query ?? {}
  }

  get(namespace: string, name: string): T | undefined {
    return this.#namespaces.get(namespace)?.get(name)?.value
  }

  /** Everything of one namespace. */
  *inNamespace(namespace: string): Iterable<T> {
    for (const { value } of this.#namespaces.get(namespace)?.values() ?? []) yield value
  }

  /** Everything. */
  *all(): Iterable<T> {
    for (const namespace of this.#namespaces.keys()) yield* this.inNamespace(namespace)
  }

  put(object: KubeObject): Iterable<string> {
    const { namespace = '', name, resourceVersion } = object.metadata
    const names = this.#namespaces.get(namespace) ?? new Map<string, Entry<T>>()
    this.#namespaces.set(namespace, names)
    const entry = names.get(name)
    // What this process wrote itself is put here before its event arrives.
    if (isOlder(resourceVersion, entry?.version)) return []
    const after = this.#options.project(object)
    names.set(name, { version: resourceVersion, value: after })
    if (entry !== undefined && JSON.stringify(entry.value) === JSON.stringify(after)) return []
    return this.#options.keysOf({ namespace, name, before: entry?.value, after })
  }

  remove({ namespace = '', name }: Key): Iterable<string> {
    const names = this.#namespaces.get(namespace)
    const entry = names?.get(name)
    if (names === undefined || entry === undefined) return []
    names.delete(name)
    if (names.size === 0) this.#namespaces.delete(namespace)
    return this.#options.keysOf({ namespace, name, before: entry.value, after: undefined })
  }

  *known(): Iterable<Key> {
    for (const [namespace, names] of this.#namespaces) {
      for (const name of names.keys()) yield { namespace, name }
    }
  }
}
