import type { KubeObject, WatchEvent } from '../core/index.ts'

/** A change of one object. An object that was deleted and created again is two changes. */
export interface Change<T = KubeObject> {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
  readonly uid: string | undefined
  /** The value before; `undefined` if there was none. */
  readonly before: T | undefined
  /** The value now; `undefined` if there is none any more. */
  readonly after: T | undefined
}

/** What is cached of objects, and how. */
export interface CacheOptions<T> {
  readonly project: (object: KubeObject) => T | undefined
  readonly equals: (a: T, b: T) => boolean
  readonly index: (value: T) => Iterable<string>
  /** Whether the deletion of an object that is not cached is a change. */
  readonly reportsUncached: boolean
}

interface Entry<T> {
  readonly namespace: string
  readonly name: string
  readonly uid: string | undefined
  /** Changes alone when an object changes in nothing that is cached. */
  version: string | undefined
  readonly value: T
}

/** Values of objects by namespace, name and index. It is synchronous, so that readers never see half a change. */
export class ObjectCache<T> {
  readonly #options: CacheOptions<T>
  readonly #namespaces = new Map<string, Map<string, Entry<T>>>()
  readonly #byIndex = new Map<string, Set<Entry<T>>>()
  /** Entries whose events have not arrived yet. */
  readonly #ownWrites = new Set<Entry<T>>()
  #size = 0

  constructor(options: CacheOptions<T>) {
    this.#options = options
  }

  get(namespace: string, name: string): T | undefined {
    return this.#entry(namespace, name)?.value
  }

  *values(namespace?: string): Iterable<T> {
    for (const { value } of this.#entries(namespace)) yield value
  }

  *withTerm(term: string): Iterable<T> {
    for (const { value } of this.#byIndex.get(term) ?? []) yield value
  }

  /** Begins a list: it has all own writes so far. */
  beginList(): void {
    this.#ownWrites.clear()
  }

  /** The changes by an event of the watch. */
  handle({ type, object }: WatchEvent): Change<T>[] {
    if (type === 'BOOKMARK') return []
    const { namespace = '', name, uid, resourceVersion } = object.metadata
    if (type !== 'DELETED') return this.put(object, resourceVersion)
    const entry = this.#entry(namespace, name)
    const isOutdated = entry !== undefined && this.#isNewerOwnWrite(entry, resourceVersion)
    const isUnknown = entry === undefined && !this.#options.reportsUncached
    return isOutdated || isUnknown ? [] : [this.#remove({ namespace, name, uid })]
  }

  /** The changes by an object, as it was at `version` of its list or event. */
  put(object: KubeObject, version: string | undefined): Change<T>[] {
    const { namespace = '', name, uid, resourceVersion } = object.metadata
    const entry = this.#entry(namespace, name)
    if (entry && (this.#isNewerOwnWrite(entry, version) || isSameVersion(entry, object))) return []
    const after = this.#options.project(object)
    if (after === undefined) return entry ? [this.#remove(entry)] : []
    const next = { namespace, name, uid, version: resourceVersion, value: after }
    if (entry && entry.uid === uid) return this.#update(entry, next)
    const deleted = entry ? [this.#remove(entry)] : []
    this.#set(next)
    return [...deleted, { namespace, name, uid, before: undefined, after }]
  }

  /** The changes by the absence of objects in a list, one by one. */
  *removeUnlisted(listed: ReadonlySet<string>, version: string): Iterable<Change<T> | undefined> {
    for (const entry of this.#entries()) {
      const isKept = listed.has(cacheKey(entry)) || this.#isNewerOwnWrite(entry, version)
      yield isKept ? undefined : this.#remove(entry)
    }
  }

  /** Puts in an own write, unless its event has arrived already. */
  applied(object: KubeObject, seenVersion: string | undefined): void {
    const { namespace = '', name, uid, resourceVersion: version } = object.metadata
    const known = this.#entry(namespace, name)?.version
    if (compareVersions(version, seenVersion) <= 0 || compareVersions(version, known) <= 0) return
    const value = this.#options.project(object)
    if (value === undefined) this.#remove({ namespace, name, uid })
    else this.#ownWrites.add(this.#set({ namespace, name, uid, version, value }))
  }

  /** Takes out an object that was deleted by an own write. */
  deleted({ metadata: { namespace = '', name, uid } }: KubeObject): void {
    if (this.#entry(namespace, name)?.uid === uid) this.#remove({ namespace, name, uid })
  }

  /** Whether the cache has these objects and no others. */
  hasExactly(items: readonly KubeObject[]): boolean {
    let count = 0
    for (const object of items) {
      const { namespace = '', name } = object.metadata
      const entry = this.#entry(namespace, name)
      if (!this.#isUpToDate(entry, object)) return false
      if (entry) count += 1
    }
    return count === this.#size
  }

  #update(entry: Entry<T>, next: Entry<T>): Change<T>[] {
    if (this.#options.equals(entry.value, next.value)) {
      entry.version = next.version
      return []
    }
    this.#set(next)
    const { namespace, name, uid, value } = next
    return [{ namespace, name, uid, before: entry.value, after: value }]
  }

  #isUpToDate(entry: Entry<T> | undefined, object: KubeObject): boolean {
    if (entry && isSameVersion(entry, object)) return true
    const value = this.#options.project(object)
    if (value === undefined || entry === undefined) return value === undefined && !entry
    return entry.uid === object.metadata.uid && this.#options.equals(entry.value, value)
  }

  #isNewerOwnWrite(entry: Entry<T>, version: string | undefined): boolean {
    return this.#ownWrites.has(entry) && compareVersions(version, entry.version) < 0
  }

  #entry(namespace: string, name: string): Entry<T> | undefined {
    return this.#namespaces.get(namespace)?.get(name)
  }

  *#entries(namespace?: string): Iterable<Entry<T>> {
    if (namespace !== undefined) yield* this.#namespaces.get(namespace)?.values() ?? []
    else for (const names of this.#namespaces.values()) yield* names.values()
  }

  #set(entry: Entry<T>): Entry<T> {
    const names = this.#namespaces.get(entry.namespace) ?? new Map<string, Entry<T>>()
    const before = names.get(entry.name)
    if (before) this.#forget(before)
    else this.#size += 1
    this.#namespaces.set(entry.namespace, names.set(entry.name, entry))
    for (const term of this.#options.index(entry.value)) {
      const entries = this.#byIndex.get(term) ?? new Set()
      this.#byIndex.set(term, entries.add(entry))
    }
    return entry
  }

  #remove({ namespace, name, uid }: Pick<Entry<T>, 'namespace' | 'name' | 'uid'>): Change<T> {
    const names = this.#namespaces.get(namespace)
    const entry = names?.get(name)
    if (names && entry) {
      names.delete(name)
      if (names.size === 0) this.#namespaces.delete(namespace)
      this.#size -= 1
      this.#forget(entry)
    }
    return { namespace, name, uid: uid ?? entry?.uid, before: entry?.value, after: undefined }
  }

  #forget(entry: Entry<T>): void {
    this.#ownWrites.delete(entry)
    for (const term of this.#options.index(entry.value)) {
      const entries = this.#byIndex.get(term)
      entries?.delete(entry)
      if (entries?.size === 0) this.#byIndex.delete(term)
    }
  }
}

/** Names an object among those of its kind. */
export const cacheKey = ({ namespace = '', name }: { namespace?: string; name: string }): string =>
  `${namespace}/${name}`

const isSameVersion = ({ uid, version }: Entry<unknown>, { metadata }: KubeObject): boolean =>
  uid === metadata.uid && version !== undefined && version === metadata.resourceVersion

const decimal = /^(?:0|[1-9]\d*)$/

/** Negative if `a` is older than `b`, 0 if they are the same, NaN if one is not decimal as in all known stores. */
function compareVersions(a: string | undefined, b: string | undefined): number {
  if (a !== undefined && a === b) return 0
  if (a === undefined || b === undefined || !decimal.test(a) || !decimal.test(b)) return Number.NaN
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : 1
}
