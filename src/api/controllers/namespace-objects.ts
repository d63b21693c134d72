import type { ClusterView, KubeObject } from '../../core/index.ts'
import { fieldsAt } from '../kinds/fields.ts'
import { configMap, type KindDefinition, namespace, serviceAccount } from '../kinds/index.ts'
import { type Controller, created } from './run-controller.ts'

/** An object that every namespace has. */
interface NamespaceObject {
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
function createNamespaceObjectController(
  view: ClusterView,
  { controllerName, definition, objectName, shape, onNewShape }: NamespaceObject,
): Controller {
  const { kind } = definition
  return {
    name: controllerName,
    start({ watch, enqueue }) {
      const activeNames = watch({
        kind: namespace.kind,
        project: (object) => (isActive(object) ? object.metadata.name : undefined),
        keysOf: ({ after }) => (after === undefined ? [] : [after]),
      })
      watch({
        kind,
        query: { fieldSelector: `metadata.name=${objectName}` },
        project: ({ metadata }) => metadata.resourceVersion,
        keysOf: (change) => [change.namespace],
      })
      onNewShape?.(() => {
        for (const name of activeNames.list()) enqueue(name)
      })
      return async (name, signal) => {
        if (!isActive(await view.get(namespace.kind, { name }, signal))) return undefined
        const found = await view.get(kind, { namespace: name, name: objectName }, signal)
        const wanted = shape(found, name)
        if (found === undefined) await created(view.write('create', wanted, {}, signal))
        else if (wanted !== found) await view.write('update', wanted, {}, signal)
        return undefined
      }
    },
  }
}

const name = 'kube-root-ca.crt'
const descriptionKey = 'kubernetes.io/description'
const description =
  'The certificates under which clients inside the cluster verify its API server, and nothing else.'

function isRight(found: KubeObject, roots: string): boolean {
  const data = fieldsAt(found, 'data')
  const described = found.metadata.annotations?.[descriptionKey]
  return data['ca.crt'] === roots && Object.keys(data).length === 1 && Boolean(described)
}

function rightObject(found: KubeObject | undefined, namespace: string, roots: string): KubeObject {
  if (found !== undefined && isRight(found, roots)) return found
  const metadata = found?.metadata ?? { name, namespace }
  return {
    ...(found ?? { apiVersion: 'v1', kind: 'ConfigMap' }),
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [descriptionKey]: description },
    },
    data: { 'ca.crt': roots },
  }
}

/** The certificates (PEM) under which the API server is verified, and how to hear of other ones. */
export interface RootCaSource {
  readonly pem: () => string
  readonly onNew?: (listener: () => void) => void
}

/** Gives every namespace the ConfigMap `kube-root-ca.crt`, and keeps it right when the roots change. */
export const createRootCaController = (view: ClusterView, roots: RootCaSource): Controller =>
  createNamespaceObjectController(view, {
    controllerName: 'root-ca',
    definition: configMap,
    objectName: name,
    shape: (found, namespace) => rightObject(found, namespace, roots.pem()),
    ...(roots.onNew && { onNewShape: roots.onNew }),
  })

const defaultAccount = (namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'default', namespace },
})

/** Gives every namespace the ServiceAccount `default`. */
export const createServiceAccountController = (view: ClusterView): Controller =>
  createNamespaceObjectController(view, {
    controllerName: 'service-account',
    definition: serviceAccount,
    objectName: 'default',
    shape: (found, namespace) => found ?? defaultAccount(namespace),
  })
