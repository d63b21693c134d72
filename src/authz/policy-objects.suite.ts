import {
  type Attributes,
  apiVersionOf,
  type Kind,
  type KubeObject,
  type UserInfo,
} from '../core/index.ts'
import { rbacGroup, rbacKinds } from './rbac-objects.ts'

/** Roles, bindings and questions in few words, for the tests of this room. */

type Rule = Readonly<Record<string, readonly string[]>>

const object = (kind: Kind, name: string, namespace = ''): KubeObject => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
  metadata: { name, ...(namespace && { namespace }) },
})

export const role = (namespace: string, name: string, ...rules: Rule[]): KubeObject => ({
  ...object(rbacKinds.role, name, namespace),
  rules,
})

export const clusterRole = (name: string, ...rules: Rule[]): KubeObject => ({
  ...object(rbacKinds.clusterRole, name),
  rules,
})

/** `User alice`, `Group ops` or `ServiceAccount builder ci`. */
function subject(text: string) {
  const [kind = '', name = '', namespace] = text.split(' ')
  return { kind, name, ...(namespace && { namespace }) }
}

/** `Role r` or `ClusterRole r`. */
function roleRef(text: string) {
  const [kind, name] = text.split(' ')
  return { apiGroup: rbacGroup, kind, name }
}

export const clusterBinding = (name: string, ref: string, ...subjects: string[]): KubeObject => ({
  ...object(rbacKinds.clusterRoleBinding, name),
  roleRef: roleRef(ref),
  subjects: subjects.map(subject),
})

export const binding = (path: string, ref: string, ...subjects: string[]): KubeObject => {
  const [namespace = '', name = ''] = path.split('/')
  return {
    ...object(rbacKinds.roleBinding, name, namespace),
    roleRef: roleRef(ref),
    subjects: subjects.map(subject),
  }
}

export const person = (username: string, ...groups: string[]): UserInfo => ({ username, groups })

export const node = (name: string): UserInfo => person(`system:node:${name}`, 'system:nodes')

/** A question on a resource: `pods`, `pods/log` or `deployments.apps`. */
export function asks(
  user: UserInfo,
  verb: string,
  what: string,
  at: { readonly namespace?: string; readonly name?: string } = {},
): Attributes {
  const [path = '', ...group] = what.split('.')
  const [resource = '', subresource = ''] = path.split('/')
  return {
    user,
    verb,
    resource: {
      group: group.join('.'),
      version: 'v1',
      resource,
      subresource,
      namespace: at.namespace ?? '',
      name: at.name ?? '',
    },
  }
}

export const asksPath = (user: UserInfo, verb: string, path: string): Attributes => ({
  user,
  verb,
  path,
})
