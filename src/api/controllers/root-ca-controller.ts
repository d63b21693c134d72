import type { ClusterView, KubeObject } from '../../core/index.ts'
import { fieldsAt } from '../kinds/fields.ts'
import { configMap } from '../kinds/index.ts'
import type { Controller } from './controller.ts'
import { createNamespaceObjectController } from './namespace-object-controller.ts'

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
