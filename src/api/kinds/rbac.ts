import type { Kind } from '../../core/index.ts'
import { nameIsPathSegment } from '../validation/names.ts'
import { defineKind } from './define-kind.ts'

const rbacKind = (kind: string, resource: string, namespaced: boolean): Kind => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  resource,
  namespaced,
})

/** Rules that hold in one namespace. */
export const role = defineKind({
  kind: rbacKind('Role', 'roles', true),
  createOnUpdate: true,
  nameProblems: nameIsPathSegment,
})

/** Rules that can hold everywhere. */
export const clusterRole = defineKind({
  kind: rbacKind('ClusterRole', 'clusterroles', false),
  createOnUpdate: true,
  nameProblems: nameIsPathSegment,
})

/** Gives a role's rules to subjects in one namespace. */
export const roleBinding = defineKind({
  kind: rbacKind('RoleBinding', 'rolebindings', true),
  createOnUpdate: true,
  nameProblems: nameIsPathSegment,
})

/** Gives a role's rules to subjects everywhere. */
export const clusterRoleBinding = defineKind({
  kind: rbacKind('ClusterRoleBinding', 'clusterrolebindings', false),
  createOnUpdate: true,
  nameProblems: nameIsPathSegment,
})
