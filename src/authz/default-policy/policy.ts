import { type KubeObject, wellKnown } from '../../core/index.ts'
import { clusterRoles } from './cluster-roles.ts'
import { controllerRoles } from './controller-roles.ts'
import { namespacedRoles } from './namespaced-roles.ts'
import { bindCluster, group, systemAccount, user } from './writing.ts'

const everybody = [group(wellKnown.authenticated), group(wellKnown.unauthenticated)]

const clusterRoleBindings = [
  bindCluster('cluster-admin', group(wellKnown.masters)),
  bindCluster('system:monitoring', group('system:monitoring')),
  bindCluster('system:discovery', group(wellKnown.authenticated)),
  bindCluster('system:basic-user', group(wellKnown.authenticated)),
  bindCluster('system:public-info-viewer', ...everybody),
  bindCluster('system:service-account-issuer-discovery', group(wellKnown.serviceAccounts)),
  bindCluster('system:node-proxier', user('system:kube-proxy')),
  bindCluster('system:kube-controller-manager', user('system:kube-controller-manager')),
  bindCluster('system:kube-dns', systemAccount('kube-dns')),
  bindCluster('system:node'), // nodes get their rights from the node authorizer
]

/** Every role and binding that a new cluster has. */
export const defaultPolicy: readonly KubeObject[] = [
  ...clusterRoles,
  ...clusterRoleBindings,
  ...controllerRoles,
  ...namespacedRoles,
]
