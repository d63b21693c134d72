import {
  type Clock,
  type ClusterView,
  hasReason,
  type Kind,
  type KubeObject,
} from '../../core/index.ts'
import { fieldsAt, textsAt } from '../kinds/fields.ts'
import { namespace, pod } from '../kinds/index.ts'
import type { Controller, Outcome } from './controller.ts'
import { Mirror } from './mirror.ts'
import { type Remains, withDeletionConditions } from './namespace-conditions.ts'
import { deleted, forEachAtOnce } from './write-outcome.ts'

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
  const { view, clock } = options
  const namespaces = new Mirror({
    kind: namespace.kind,
    project: (object) =>
      object.metadata.deletionTimestamp !== undefined &&
      finalizersOf(object).includes(ownFinalizer),
    keysOf: ({ name, after }) => (after === true ? [name] : []),
  })
  return {
    name: 'namespace',
    watches: [namespaces],
    pauses: { firstMs: 10, longestMs: 2_000 },
    async reconcile(name, signal) {
      const found = await view.get(namespace.kind, { name }, signal)
      if (found?.metadata.deletionTimestamp === undefined) return undefined
      if (!finalizersOf(found).includes(ownFinalizer)) return undefined
      const remains = await new Content(options, name, signal).clear()
      const told = withDeletionConditions(found, remains, clock.now())
      if (told !== found) {
        // Also a barrier: content whose creation was under way is stored before this write is, so
        // that the next look sees it.
        await tell(view, told, signal)
        return { again: true }
      }
      const isEmpty = remains.resources.size === 0 && remains.failures.length === 0
      return isEmpty ? finalize(view, found, signal) : { again: true }
    },
  }
}

async function tell(view: ClusterView, object: KubeObject, signal: AbortSignal): Promise<void> {
  try {
    await view.write('update', object, { subresource: 'status' }, signal)
  } catch (error) {
    // Somebody else wrote first; the next look tells again.
    if (!hasReason(error, 'Conflict')) throw error
  }
}
