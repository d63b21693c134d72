import { apiVersionOf, type Kind, type KubeObject } from '../../core/index.ts'
import { type PolicyRule, rbacGroup, rbacKinds, writeRule } from '../rbac-objects.ts'

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')

/** A rule on resources; lists are words in one string, and the core group is written `core`. */
export const rule = (verbs: string, groups: string, resources: string, names = ''): PolicyRule => ({
  verbs: words(verbs),
  apiGroups: words(groups).map((group) => (group === 'core' ? '' : group)),
  resources: words(resources),
  resourceNames: words(names),
  nonResourceURLs: [],
})

/** A rule on plain paths. */
export const paths = (verbs: string, urls: string): PolicyRule => ({
  verbs: words(verbs),
  apiGroups: [],
  resources: [],
  resourceNames: [],
  nonResourceURLs: words(urls),
})

/** The verbs that only look. */
export const read = 'get list watch'

/** The verbs that change something. */
export const write = 'create update patch delete deletecollection'

/** Leave to report events, which most components have. */
export const reportEvents = rule('create update patch', 'core events.k8s.io', 'events')

/** The annotation by which an object opts out of being brought up to date at every start. */
export const autoUpdate = 'rbac.authorization.kubernetes.io/autoupdate'

const metadata = (name: string, namespace: string, labels: Readonly<Record<string, string>>) => ({
  name,
  ...(namespace && { namespace }),
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { [autoUpdate]: 'true' },
})

const objectOf = (kind: Kind) => ({ apiVersion: apiVersionOf(kind), kind: kind.kind })

/** A ClusterRole of the default policy. */
export const clusterRole = (
  name: string,
  rules: readonly PolicyRule[],
  labels: Readonly<Record<string, string>> = {},
): KubeObject => ({
  ...objectOf(rbacKinds.clusterRole),
  metadata: metadata(name, '', labels),
  rules: rules.map(writeRule),
})

const aggregationLabel = (name: string) => `rbac.authorization.k8s.io/aggregate-to-${name}`

/** The label by which a ClusterRole adds its rules to another. */
export const aggregatesTo = (name: string) => ({ [aggregationLabel(name)]: 'true' })

/** A ClusterRole whose rules are gathered from those with the label of its name. */
export const aggregatedRole = (
  name: string,
  labels: Readonly<Record<string, string>> = {},
): KubeObject => ({
  ...clusterRole(name, [], labels),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: aggregatesTo(name) }] },
})

/** A Role of the default policy. */
export const role = (
  namespace: string,
  name: string,
  rules: readonly PolicyRule[],
): KubeObject => ({
  ...objectOf(rbacKinds.role),
  metadata: metadata(name, namespace, {}),
  rules: rules.map(writeRule),
})

/** A subject of a binding as the API carries it. */
export type SubjectObject = Readonly<Record<string, string>>

/** A user as a subject. */
export const user = (name: string): SubjectObject => ({ apiGroup: rbacGroup, kind: 'User', name })

/** A group as a subject. */
export const group = (name: string): SubjectObject => ({ apiGroup: rbacGroup, kind: 'Group', name })

/** A service account of `kube-system` as a subject. */
export const systemAccount = (name: string): SubjectObject => ({
  kind: 'ServiceAccount',
  name,
  namespace: 'kube-system',
})

/** Binds a ClusterRole to subjects, under the role's own name. */
export const bindCluster = (name: string, ...subjects: readonly SubjectObject[]): KubeObject => ({
  ...objectOf(rbacKinds.clusterRoleBinding),
  metadata: metadata(name, '', {}),
  roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
  ...(subjects.length > 0 && { subjects }),
})

/** Binds a Role of the same namespace to subjects. */
export const bind = (
  namespace: string,
  names: { readonly role: string; readonly binding?: string },
  ...subjects: readonly SubjectObject[]
): KubeObject => ({
  ...objectOf(rbacKinds.roleBinding),
  metadata: metadata(names.binding ?? names.role, namespace, {}),
  roleRef: { apiGroup: rbacGroup, kind: 'Role', name: names.role },
  subjects,
})
