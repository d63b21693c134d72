import { rbacKinds } from '../../authz/index.ts'
import { apiVersionOf, type KubeObject, machineIdentity } from '../../core/index.ts'

const { clusterRole, roleBinding } = rbacKinds

/** What a machine may do in the namespaces where it is bound to this; `machineAdmission` narrows it to its own objects. */
export const workloadRole: KubeObject = {
  apiVersion: apiVersionOf(clusterRole),
  kind: clusterRole.kind,
  metadata: { name: 'sallyport:workload-runner' },
  rules: [
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
  ],
}

/** The binding that lets a machine run workloads in a namespace. */
export function workloadBinding(machine: string, namespace: string): KubeObject {
  return {
    apiVersion: apiVersionOf(roleBinding),
    kind: roleBinding.kind,
    metadata: { name: `sallyport:workloads:${machine}`, namespace },
    roleRef: {
      apiGroup: clusterRole.group,
      kind: clusterRole.kind,
      name: workloadRole.metadata.name,
    },
    subjects: [
      {
        apiGroup: clusterRole.group,
        kind: 'User',
        name: `${machineIdentity.userPrefix}${machine}`,
      },
    ],
  }
}
