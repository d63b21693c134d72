import { rbacKinds, selectsNode } from '../../authz/index.ts'
import {
  type Authorizer,
  apiVersionOf,
  type ClusterView,
  type Decision,
  isRecord,
  type KubeObject,
  machineIdentity,
  machineNameOf,
  machineOf,
  type ResourceAttributes,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import { isCertificateRequest } from './machine-admission.ts'

const allowed: Decision = { allowed: true, reason: '' }
const noOpinion: Decision = { allowed: false, reason: '' }
const readingVerbs = new Set(['get', 'list', 'watch'])

/** Lets a machine see its own Pods and requests for certificates, and no others; what it may write is up to RBAC and `machineAdmission`. */
export function machineAuthorizer(view: Pick<ClusterView, 'get'>): Authorizer {
  return {
    group: machineIdentity.group,
    authorize: ({ user, verb, resource }, signal) => {
      const machine = machineNameOf(user)
      if (!machine || !resource || !readingVerbs.has(verb)) return noOpinion
      if (isCertificateRequest(resource)) return isOwnRequest(view, user, resource, signal)
      if (!isPods(resource)) return noOpinion
      if (verb === 'get') return isOwnPod(view, machine, resource, signal)
      return selectsNode(resource, machine) ? allowed : noOpinion
    },
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
  }
}

const isPods = (resource: ResourceAttributes): boolean =>
  resource.group === '' && resource.resource === 'pods' && resource.subresource === ''

/** One request by its name, also where a list or a watch asks for that one alone. */
async function isOwnRequest(
  view: Pick<ClusterView, 'get'>,
  { username }: UserInfo,
  { name }: ResourceAttributes,
  signal: AbortSignal,
): Promise<Decision> {
  if (name === '') return noOpinion
  const request = await view.get(wellKnownKinds.certificateSigningRequest, { name }, signal)
  const spec = request?.['spec']
  return isRecord(spec) && spec['username'] === username ? allowed : noOpinion
}

async function isOwnPod(
  view: Pick<ClusterView, 'get'>,
  machine: string,
  { namespace, name }: ResourceAttributes,
  signal: AbortSignal,
): Promise<Decision> {
  const pod = await view.get(wellKnownKinds.pod, { namespace, name }, signal)
  return pod && machineOf(pod) === machine ? allowed : noOpinion
}

const { clusterRole, role, roleBinding } = rbacKinds

const workloadRules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete'] },
  { apiGroups: [''], resources: ['pods/status'], verbs: ['update'] },
  { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
  { apiGroups: [''], resources: ['services'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: ['kube-root-ca.crt'],
    verbs: ['get'],
  },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['create', 'get', 'update', 'delete'],
  },
]

/** What a machine may do in the namespaces where it is bound to this; `machineAdmission` narrows it to its own objects. */
export const workloadRole: KubeObject = {
  apiVersion: apiVersionOf(clusterRole),
  kind: clusterRole.kind,
  metadata: { name: 'sallyport:workload-runner' },
  rules: workloadRules,
}

/** The same in one namespace, for a machine that runs workloads of these service accounts only. */
export function narrowWorkloadRole(
  machine: string,
  namespace: string,
  serviceAccounts: readonly string[],
): KubeObject {
  const rules = workloadRules.map((rule) =>
    rule.resources.includes('serviceaccounts/token')
      ? { ...rule, resourceNames: serviceAccounts }
      : rule,
  )
  const metadata = { name: `sallyport:workloads:${machine}`, namespace }
  return { apiVersion: apiVersionOf(role), kind: role.kind, metadata, rules }
}

/** The binding that lets a machine run workloads in a namespace, by the ClusterRole unless a Role there is given. */
export function workloadBinding(
  machine: string,
  namespace: string,
  granted: KubeObject = workloadRole,
): KubeObject {
  return {
    apiVersion: apiVersionOf(roleBinding),
    kind: roleBinding.kind,
    metadata: { name: `sallyport:workloads:${machine}`, namespace },
    roleRef: { apiGroup: clusterRole.group, kind: granted.kind, name: granted.metadata.name },
    subjects: [
      {
        apiGroup: clusterRole.group,
        kind: 'User',
        name: `${machineIdentity.userPrefix}${machine}`,
      },
    ],
  }
}
