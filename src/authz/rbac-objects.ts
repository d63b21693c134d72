import { isRecord, type Kind, type KubeObject } from '../core/index.ts'

/** What a role allows, on resources or on plain paths. Absent lists are empty. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

/** Whom a binding gives its role. */
export interface Subject {
  readonly kind: string
  readonly name: string
  /** Of service accounts only. */
  readonly namespace: string
}

/** The role that a binding gives. */
export interface RoleRef {
  readonly kind: string
  readonly name: string
}

/** A RoleBinding, or a ClusterRoleBinding when `namespace` is empty. */
export interface Binding {
  readonly name: string
  readonly namespace: string
  readonly roleRef: RoleRef
  readonly subjects: readonly Subject[]
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const texts = (value: unknown): readonly string[] =>
  items(value).filter((item) => typeof item === 'string')

function readRule(value: unknown): PolicyRule[] {
  if (!isRecord(value)) return []
  return [
    {
      verbs: texts(value['verbs']),
      apiGroups: texts(value['apiGroups']),
      resources: texts(value['resources']),
      resourceNames: texts(value['resourceNames']),
      nonResourceURLs: texts(value['nonResourceURLs']),
    },
  ]
}

/** The rules of a Role or ClusterRole; what is not a rule grants nothing. */
export const readRules = (role: KubeObject): PolicyRule[] => items(role['rules']).flatMap(readRule)

/** A rule in the form in which the API carries it. */
export const writeRule = (rule: PolicyRule): Record<string, unknown> => ({
  ...(rule.apiGroups.length > 0 && { apiGroups: [...rule.apiGroups] }),
  ...(rule.nonResourceURLs.length > 0 && { nonResourceURLs: [...rule.nonResourceURLs] }),
  ...(rule.resourceNames.length > 0 && { resourceNames: [...rule.resourceNames] }),
  ...(rule.resources.length > 0 && { resources: [...rule.resources] }),
  verbs: [...rule.verbs],
})

/** The role that a binding object refers to. */
export function readRoleRef(binding: KubeObject): RoleRef {
  const ref = isRecord(binding['roleRef']) ? binding['roleRef'] : {}
  return { kind: text(ref['kind']), name: text(ref['name']) }
}

/** A binding object in our terms. */
export function readBinding(binding: KubeObject): Binding {
  const subjects = items(binding['subjects']).filter(isRecord)
  return {
    name: binding.metadata.name,
    namespace: binding.metadata.namespace ?? '',
    roleRef: readRoleRef(binding),
    subjects: subjects.map((subject) => ({
      kind: text(subject['kind']),
      name: text(subject['name']),
      namespace: text(subject['namespace']),
    })),
  }
}

/** The selectors by which a ClusterRole gathers the rules of others; `undefined` if it does not. */
export function readRoleSelectors(role: KubeObject): readonly unknown[] | undefined {
  const aggregation = role['aggregationRule']
  return isRecord(aggregation) ? items(aggregation['clusterRoleSelectors']) : undefined
}

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
