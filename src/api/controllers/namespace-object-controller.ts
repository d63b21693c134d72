import type { ClusterView, KubeObject } from '../../core/index.ts'
import { type KindDefinition, namespace } from '../kinds/index.ts'
import type { Controller } from './controller.ts'
import { Mirror } from './mirror.ts'
import { created } from './write-outcome.ts'

/** An object that every namespace has. */
export interface NamespaceObject {
  readonly controllerName: string
  readonly definition: KindDefinition
  readonly objectName: string
  /** The object as it should be, given what is there; the very same when that is right already. */
  readonly shape: (found: KubeObject | undefined, namespace: string) => KubeObject
  /** Calls back when objects should look otherwise than before. */
  readonly onNewShape?: (listener: () => void) => void
}

const isActive = (found: KubeObject | undefined): boolean =>
  found !== undefined && found.metadata.deletionTimestamp === undefined

/** Gives every namespace that is not on its way out an object, and gives it back when it is changed or deleted. */
export function createNamespaceObjectController(
  view: ClusterView,
  { controllerName, definition, objectName, shape, onNewShape }: NamespaceObject,
): Controller {
  const { kind } = definition
  const namespaces = new Mirror({
    kind: namespace.kind,
    project: ({ metadata }) => metadata.deletionTimestamp === undefined,
    keysOf: ({ name, after }) => (after === true ? [name] : []),
  })
  const objects = new Mirror({
    kind,
    query: { fieldSelector: `metadata.name=${objectName}` },
    project: ({ metadata }) => metadata.resourceVersion,
    keysOf: (change) => [change.namespace],
  })
  return {
    name: controllerName,
    watches: [namespaces, objects],
    attach: (ask) =>
      onNewShape?.(() => {
        for (const { name } of namespaces.known()) ask(name)
      }),
    async reconcile(name, signal) {
      if (!isActive(await view.get(namespace.kind, { name }, signal))) return undefined
      const found = await view.get(kind, { namespace: name, name: objectName }, signal)
      const wanted = shape(found, name)
      if (found === undefined) await created(view.write('create', wanted, {}, signal))
      else if (wanted !== found) await view.write('update', wanted, {}, signal)
      return undefined
    },
  }
}
