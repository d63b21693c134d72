import type { Kind } from '../core/index.ts'

/** The API group of roles and bindings. */
export const rbacGroup = 'rbac.authorization.k8s.io'

const rbacKind = (kind: string, resource: string, namespaced: boolean): Kind => ({
  group: rbacGroup,
  version: 'v1',
  kind,
  resource,
  namespaced,
})

/** The four kinds that RBAC decides by. */
export const rbacKinds = {
  role: rbacKind('Role', 'roles', true),
  clusterRole: rbacKind('ClusterRole', 'clusterroles', false),
  roleBinding: rbacKind('RoleBinding', 'rolebindings', true),
  clusterRoleBinding: rbacKind('ClusterRoleBinding', 'clusterrolebindings', false),
} as const
