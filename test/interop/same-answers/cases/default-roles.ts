import { type Case, get, type Topic } from '../ask.ts'
import { storedKinds } from '../kinds.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'

/** Roles of Kubernetes that concern the kinds served; aggregated ones need a controller and are left out. */
const roles = [
  'cluster-admin',
  'system:aggregate-to-admin',
  'system:aggregate-to-edit',
  'system:aggregate-to-view',
  'system:auth-delegator',
  'system:basic-user',
  'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
  'system:certificates.k8s.io:kube-apiserver-client-approver',
  'system:certificates.k8s.io:kube-apiserver-client-kubelet-approver',
  'system:certificates.k8s.io:kubelet-serving-approver',
  'system:certificates.k8s.io:legacy-unknown-approver',
  'system:discovery',
  'system:kube-aggregator',
  'system:kube-controller-manager',
  'system:kube-dns',
  'system:kubelet-api-admin',
  'system:monitoring',
  'system:node',
  'system:node-bootstrapper',
  'system:node-problem-detector',
  'system:node-proxier',
  'system:public-info-viewer',
  'system:service-account-issuer-discovery',
]
const controllers = [
  'certificate-controller',
  'clusterrole-aggregation-controller',
  'endpoint-controller',
  'endpointslice-controller',
  'endpointslicemirroring-controller',
  'generic-garbage-collector',
  'namespace-controller',
  'node-controller',
  'pod-garbage-collector',
  'root-ca-cert-publisher',
  'service-account-controller',
  'service-controller',
].map((name) => `system:controller:${name}`)

interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

const groupOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''

/** What is served, as rules name it. Rules for anything else grant nothing here. */
const served = new Set([
  ...storedKinds.map(({ apiVersion, resource }) => `${groupOf(apiVersion)}/${resource}`),
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
  'certificates.k8s.io/signers',
  '*/*',
])

const notServed = new Set(['/flagz', '/statusz'])

/** Every single thing that a rule grants on what is served. */
function grantsOf({ verbs, ...rule }: PolicyRule): string[] {
  const names = rule.resourceNames?.length ? rule.resourceNames : ['']
  const onResources = (rule.apiGroups ?? []).flatMap((group) =>
    (rule.resources ?? [])
      .filter((resource) => served.has(`${group}/${resource.split('/')[0]}`))
      .flatMap((resource) => names.map((name) => `${group}/${resource} ${name}`)),
  )
  const onPaths = (rule.nonResourceURLs ?? []).filter((path) => !notServed.has(path))
  const targets = [...onResources, ...onPaths]
  return targets.flatMap((target) => verbs.map((verb) => `${verb} ${target}`))
}

function withGrants(json: unknown): unknown {
  const { rules, ...role } = json as { rules?: PolicyRule[] | null }
  const grants = (rules ?? []).flatMap(grantsOf)
  return { ...role, grants: Object.fromEntries(grants.map((grant) => [grant, true])) }
}

const granting: Case[] = [...roles, ...controllers].map((name) => ({
  name,
  steps: [get(`${rbac}/clusterroles/${name}`)],
  view: withGrants,
}))

const bound = [
  'cluster-admin',
  'system:basic-user',
  'system:discovery',
  'system:kube-controller-manager',
  'system:kube-dns',
  'system:monitoring',
  'system:node',
  'system:node-proxier',
  'system:public-info-viewer',
  'system:service-account-issuer-discovery',
  ...controllers,
]

/** The rights that everybody starts with. */
export const defaultRoles: Topic = {
  name: 'default roles and bindings',
  cases: [
    ...granting,
    {
      name: 'bindings',
      steps: bound.map((name) => get(`${rbac}/clusterrolebindings/${name}`)),
    },
  ],
}
