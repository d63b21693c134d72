import {
  type Clock,
  type ClusterView,
  hasReason,
  type Kind,
  type KubeObject,
  kubeTime,
} from '../../core/index.ts'
import { type Fields, fieldsAt, recordsAt, textAt, textsAt } from '../kinds/fields.ts'
import { namespace, pod } from '../kinds/index.ts'
import { type Controller, deleted, forEachAtOnce, type Outcome } from './run-controller.ts'

/** What is left of a namespace that is being deleted. */
interface Remains {
  /** By resource, such as `pods.` or `leases.coordination.k8s.io`. */
  readonly resources: ReadonlyMap<string, number>
  readonly finalizers: ReadonlyMap<string, number>
  /** What went wrong while deleting, in words. */
  readonly failures: readonly string[]
}

interface Condition {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

const listed = (counts: ReadonlyMap<string, number>, words: (name: string) => string): string =>
  [...counts]
    .map(([name, count]) => `${words(name)} ${count} resource instances`)
    .toSorted()
    .join(', ')

function contentCondition({ resources }: Remains): Condition {
  const type = 'NamespaceContentRemaining'
  if (resources.size === 0) {
    const message = 'All content successfully removed'
    return { type, status: 'False', reason: 'ContentRemoved', message }
  }
  const message = `Some resources are remaining: ${listed(resources, (name) => `${name} has`)}`
  return { type, status: 'True', reason: 'SomeResourcesRemain', message }
}

function finalizerCondition({ finalizers }: Remains): Condition {
  const type = 'NamespaceFinalizersRemaining'
  if (finalizers.size === 0) {
    const message = 'All content-preserving finalizers finished'
    return { type, status: 'False', reason: 'ContentHasNoFinalizers', message }
  }
  const names = listed(finalizers, (name) => `${name} in`)
  const message = `Some content in the namespace has finalizers remaining: ${names}`
  return { type, status: 'True', reason: 'SomeFinalizersRemain', message }
}

function failureCondition({ failures }: Remains): Condition {
  const type = 'NamespaceDeletionContentFailure'
  if (failures.length === 0) {
    const message = 'All content successfully deleted, may be waiting on finalization'
    return { type, status: 'False', reason: 'ContentDeleted', message }
  }
  const message = `Failed to delete all resource types, ${failures.length} remaining: ${failures.toSorted().join(', ')}`
  return { type, status: 'True', reason: 'ContentDeletionFailed', message }
}

const conditionsOf = (remains: Remains): Condition[] => [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    status: 'False',
    reason: 'ResourcesDiscovered',
    message: 'All resources successfully discovered',
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    status: 'False',
    reason: 'ParsedGroupVersions',
    message: 'All legacy kube types successfully parsed',
  },
  failureCondition(remains),
  contentCondition(remains),
  finalizerCondition(remains),
]

const isSame = (old: Fields, next: Condition): boolean =>
  (['status', 'reason', 'message'] as const).every((field) => textAt(old, field) === next[field])

/** The namespace with the conditions that tell what its deletion waits for; the very same when they say so already. */
function withDeletionConditions(namespace: KubeObject, remains: Remains, now: number): KubeObject {
  const status = fieldsAt(namespace, 'status')
  const old = recordsAt(status, 'conditions')
  const wanted = conditionsOf(remains)
  const before = (type: string): Fields | undefined =>
    old.find((condition) => textAt(condition, 'type') === type)
  if (wanted.every((next) => isSame(before(next.type) ?? {}, next))) return namespace
  const others = old.filter((condition) => wanted.every(({ type }) => type !== condition['type']))
  const conditions = wanted.map((next) => {
    const known = before(next.type)
    const kept = known && textAt(known, 'status') === next.status
    return { ...next, lastTransitionTime: kept ? known['lastTransitionTime'] : kubeTime(now) }
  })
  return {
    ...namespace,
    status: { ...status, phase: 'Terminating', conditions: [...others, ...conditions] },
  }
}

const ownFinalizer = 'kubernetes'

/** What the namespace controller works with. */
export interface NamespaceControllerOptions {
  readonly view: ClusterView
  readonly clock: Clock
  /** All kinds of the cluster; those without a namespace are passed over. */
  readonly kinds: readonly Kind[]
}

const finalizersOf = (object: KubeObject): string[] =>
  textsAt(fieldsAt(object, 'spec'), 'finalizers')

const isPod = (kind: Kind): boolean => kind.group === '' && kind.kind === pod.kind.kind

function addTo(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

class Content {
  readonly #options: NamespaceControllerOptions
  readonly #name: string
  readonly #signal: AbortSignal
  readonly #resources = new Map<string, number>()
  readonly #finalizers = new Map<string, number>()
  readonly #failures: string[] = []

  constructor(options: NamespaceControllerOptions, name: string, signal: AbortSignal) {
    this.#options = options
    this.#name = name
    this.#signal = signal
  }

  /** Deletes all that can be deleted now and tells what is left. */
  async clear(): Promise<Remains> {
    const kinds = this.#options.kinds.filter((kind) => kind.namespaced)
    // Pods go first: what they use must not be taken from under them.
    for (const kind of kinds.filter(isPod)) await this.#clearKind(kind)
    if (this.#resources.size === 0) {
      for (const kind of kinds.filter((each) => !isPod(each))) await this.#clearKind(kind)
    }
    return {
      resources: this.#resources,
      finalizers: this.#finalizers,
      failures: this.#failures,
    }
  }

  async #clearKind(kind: Kind): Promise<void> {
    const objects = await this.#list(kind)
    const living = objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    try {
      await forEachAtOnce(living, (object) => this.#delete(object))
    } catch (error) {
      this.#signal.throwIfAborted()
      this.#failures.push(error instanceof Error ? error.message : String(error))
    }
    const remaining = objects.length === 0 ? [] : await this.#list(kind)
    for (const { metadata } of remaining) {
      addTo(this.#resources, `${kind.resource}.${kind.group}`)
      for (const finalizer of metadata.finalizers ?? []) addTo(this.#finalizers, finalizer)
    }
  }

  async #list(kind: Kind): Promise<KubeObject[]> {
    const query = { namespace: this.#name }
    return (await this.#options.view.list(kind, query, this.#signal)).items
  }

  async #delete(object: KubeObject): Promise<void> {
    const { uid } = object.metadata
    const options = uid === undefined ? {} : { uid }
    await deleted(this.#options.view.write('delete', object, options, this.#signal))
  }
}

/** Lets go of a namespace whose content is gone; the registry then removes it. */
async function finalize(
  view: ClusterView,
  object: KubeObject,
  signal: AbortSignal,
): Promise<Outcome> {
  const finalizers = finalizersOf(object).filter((finalizer) => finalizer !== ownFinalizer)
  const finished = { ...object, spec: { ...fieldsAt(object, 'spec'), finalizers } }
  await deleted(view.write('update', finished, { subresource: 'finalize' }, signal))
  return undefined
}

/** Empties namespaces that are being deleted, then lets them go. */
export function createNamespaceController(options: NamespaceControllerOptions): Controller {
  return {
    name: 'namespace',
    backoff: { initialMs: 10, maxMs: 2_000 },
    start({ watch }) {
      watch({
        kind: namespace.kind,
        project: (object) => isTerminating(object) || undefined,
        keysOf: ({ name, after }) => (after ? [name] : []),
      })
      return (name, signal) => reconcile(options, name, signal)
    },
  }
}

const isTerminating = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp !== undefined && finalizersOf(object).includes(ownFinalizer)

async function reconcile(
  options: NamespaceControllerOptions,
  name: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const { view, clock } = options
  const found = await view.get(namespace.kind, { name }, signal)
  if (found === undefined || !isTerminating(found)) return undefined
  const remains = await new Content(options, name, signal).clear()
  const updated = withDeletionConditions(found, remains, clock.now())
  if (updated !== found) {
    // Also a barrier: content whose creation was under way is stored before this write, so that the next
    // reconcile sees it.
    await writeStatus(view, updated, signal)
    return { again: true }
  }
  const isEmpty = remains.resources.size === 0 && remains.failures.length === 0
  return isEmpty ? finalize(view, found, signal) : { again: true }
}

async function writeStatus(
  view: ClusterView,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  try {
    await view.write('update', object, { subresource: 'status' }, signal)
  } catch (error) {
    // Another client wrote first; the next reconcile writes again.
    if (!hasReason(error, 'Conflict')) throw error
  }
}
