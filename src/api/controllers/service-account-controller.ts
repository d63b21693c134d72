import type { ClusterView, KubeObject } from '../../core/index.ts'
import { serviceAccount } from '../kinds/index.ts'
import type { Controller } from './controller.ts'
import { createNamespaceObjectController } from './namespace-object-controller.ts'

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
