import {
  ApiError,
  alreadyExists,
  apiVersionOf,
  type ClusterView,
  conflict,
  type Key,
  type Kind,
  type KubeObject,
  kubeTime,
  notFound,
  type ObjectList,
  objectModified,
  type Preconditions,
  type Query,
  type ReviewKind,
  type WatchEvent,
} from '../core/index.ts'

interface Change {
  readonly revision: number
  readonly kind: string
  readonly event: WatchEvent
}

interface OpenWatch {
  /** Looks for changes again, or fails with `error`. */
  readonly wake: (error?: Error) => void
}

type Review = (kind: ReviewKind, object: KubeObject) => KubeObject

/** How a fake cluster differs from an empty one. */
export interface FakeClusterOptions {
  readonly objects?: readonly KubeObject[]
  /** Answers reviews; without it every review is refused. */
  readonly review?: Review
}

/**
 * A small working cluster in memory: objects, revisions, watches and compare-and-swap, as a
 * Kubernetes API has them. It validates nothing and knows any kind.
 */
export class FakeClusterView implements ClusterView {
  readonly #objects = new Map<string, KubeObject>()
  readonly #watches = new Set<OpenWatch>()
  readonly #review: Review | undefined
  #changes: Change[] = []
  #revision = 1
  #compacted = 0
  #uids = 0
  #failure: Error | undefined

  constructor(options: FakeClusterOptions = {}) {
    this.#review = options.review
    for (const object of options.objects ?? []) this.put(object)
  }

  /** Watches that are open now. */
  get openWatches(): number {
    return this.#watches.size
  }

  /** Creates or replaces an object, whatever is there. */
  put(object: KubeObject): KubeObject {
    return this.#store(object, this.#objects.get(keyOf(object)))
  }

  /** Forgets the history, so that watches from earlier revisions expire. */
  compact(): void {
    this.#compacted = this.#revision
    this.#changes = []
  }

  /** Ends every open watch, with `error` or as a server does whose time is up. */
  cutWatches(error: Error = endOfWatch): void {
    for (const watch of this.#watches) watch.wake(error)
  }

  /** Fails every call from now on with `error`; `undefined` heals it. */
  fail(error: Error | undefined): void {
    this.#failure = error
    if (error) this.cutWatches(error)
  }

  async get(kind: Kind, key: Key, signal: AbortSignal): Promise<KubeObject | undefined> {
    this.#refuse(signal)
    const found = this.#objects.get(storedKey(kindKey(kind), key.namespace ?? '', key.name))
    return found && structuredClone(found)
  }

  async list(kind: Kind, query: Query, signal: AbortSignal): Promise<ObjectList> {
    this.#refuse(signal)
    const matches = matcher(kind, query)
    const items = [...this.#objects.entries()]
      .filter(([, object]) => matches(object))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => structuredClone(object))
    return { items, resourceVersion: String(this.#revision) }
  }

  async *watch(
    kind: Kind,
    query: Query & { readonly from: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    this.#refuse(signal)
    const from = Number(query.from)
    if (from < this.#compacted) {
      throw new ApiError('Expired', `too old resource version: ${from} (${this.#compacted})`)
    }
    const matches = matcher(kind, query)
    const wanted = (change: Change) =>
      change.kind === kindKey(kind) && matches(change.event.object) && change.revision > from
    yield* this.#follow(wanted, signal)
  }

  async write(
    op: 'create' | 'update' | 'delete',
    object: KubeObject,
    options: { readonly subresource?: string } & Preconditions,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    this.#refuse(signal)
    const stored = this.#objects.get(keyOf(object))
    const resource = resourceOf(object)
    const name = object.metadata.name
    if (op === 'create') {
      if (stored) throw alreadyExists(resource, name)
      return this.#store(object, undefined)
    }
    if (!stored) throw notFound(resource, name)
    const expected = options.resourceVersion ?? (op === 'update' && object.metadata.resourceVersion)
    if (expected && expected !== stored.metadata.resourceVersion) {
      throw objectModified(resource, name)
    }
    if (options.uid !== undefined && options.uid !== stored.metadata.uid) {
      throw conflict(resource, name, `the UID in the precondition is not ${stored.metadata.uid}`)
    }
    return op === 'update' ? this.#store(object, stored) : this.#remove(stored)
  }

  async review(kind: ReviewKind, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    this.#refuse(signal)
    if (!this.#review) throw new ApiError('MethodNotAllowed', `this fake answers no ${kind}`)
    return structuredClone(this.#review(kind, structuredClone(object)))
  }

  #refuse(signal: AbortSignal): void {
    signal.throwIfAborted()
    if (this.#failure) throw this.#failure
  }

  #store(object: KubeObject, stored: KubeObject | undefined): KubeObject {
    const next = structuredClone(object)
    this.#revision += 1
    next.metadata = {
      ...next.metadata,
      uid: stored?.metadata.uid ?? next.metadata.uid ?? `uid-${++this.#uids}`,
      creationTimestamp: stored?.metadata.creationTimestamp ?? kubeTime(0),
      resourceVersion: String(this.#revision),
    }
    this.#objects.set(keyOf(next), next)
    this.#announce(stored ? 'MODIFIED' : 'ADDED', next)
    return structuredClone(next)
  }

  #remove(stored: KubeObject): KubeObject {
    this.#revision += 1
    this.#objects.delete(keyOf(stored))
    const last = structuredClone(stored)
    last.metadata.resourceVersion = String(this.#revision)
    this.#announce('DELETED', last)
    return last
  }

  #announce(type: WatchEvent['type'], object: KubeObject): void {
    this.#changes.push({
      revision: this.#revision,
      kind: `${object.apiVersion}/${object.kind}`,
      event: { type, object },
    })
    for (const watch of this.#watches) watch.wake()
  }

  async *#follow(wanted: (change: Change) => boolean, signal: AbortSignal) {
    let seen = 0
    let failure: Error | undefined
    let wake = () => {}
    const watch: OpenWatch = {
      wake: (error) => {
        failure ??= error
        wake()
      },
    }
    const stop = () => watch.wake(abortError(signal))
    signal.addEventListener('abort', stop, { once: true })
    this.#watches.add(watch)
    try {
      for (;;) {
        for (const change of this.#changes.filter((each) => each.revision > seen)) {
          seen = change.revision
          if (wanted(change)) yield structuredClone(change.event)
        }
        if (failure === endOfWatch) return
        if (failure) throw failure
        await new Promise<void>((resolve) => {
          wake = resolve
          if (this.#changes.some((change) => change.revision > seen)) resolve()
        })
      }
    } finally {
      signal.removeEventListener('abort', stop)
      this.#watches.delete(watch)
    }
  }
}

const endOfWatch = new Error('end of watch')

const abortError = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason })

const kindKey = (kind: Kind) => `${apiVersionOf(kind)}/${kind.kind}`
const storedKey = (kind: string, namespace: string, name: string) =>
  `${kind}\0${namespace}\0${name}`
const keyOf = (object: KubeObject) =>
  storedKey(
    `${object.apiVersion}/${object.kind}`,
    object.metadata.namespace ?? '',
    object.metadata.name,
  )

function resourceOf(object: KubeObject) {
  const slash = object.apiVersion.indexOf('/')
  return {
    group: slash < 0 ? '' : object.apiVersion.slice(0, slash),
    resource: `${object.kind.toLowerCase()}s`,
  }
}

function matcher(kind: Kind, query: Query): (object: KubeObject) => boolean {
  const labels = requirements(query.labelSelector)
  const fields = requirements(query.fieldSelector)
  return (object) =>
    `${object.apiVersion}/${object.kind}` === kindKey(kind) &&
    (!query.namespace || object.metadata.namespace === query.namespace) &&
    labels.every((holds) => holds((key) => object.metadata.labels?.[key])) &&
    fields.every((holds) => holds((path) => fieldAt(object, path)))
}

type Requirement = (read: (key: string) => string | undefined) => boolean

/** Terms of the forms `a=b`, `a==b`, `a!=b`, `a` and `!a`. */
function requirements(selector: string | undefined): Requirement[] {
  const terms = selector?.split(',').filter((term) => term !== '') ?? []
  return terms.map((term) => {
    const [, key = '', operator, value = ''] = /^([^=!]*)(?:(!=|==?)(.*))?$/.exec(term) ?? []
    if (operator === '!=') return (read) => read(key) !== value
    if (operator !== undefined) return (read) => (read(key) ?? '') === value
    if (term.startsWith('!')) return (read) => read(term.slice(1)) === undefined
    return (read) => read(key) !== undefined
  })
}

function fieldAt(object: KubeObject, path: string): string | undefined {
  let value: unknown = object
  for (const step of path.split('.')) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined
  }
  return typeof value === 'string' ? value : undefined
}
