import { type KubeObject, machineIdentity } from '../../core/index.ts'
import { clusterInfoKey } from './discovery-authenticator.ts'

const rbac = 'rbac.authorization.k8s.io'
const apiVersion = `${rbac}/v1`
/** Those who may join nodes; tokens of kubeadm are in it. */
export const nodeTokenGroup = 'system:bootstrappers:kubeadm:default-node-token'

interface Subject {
  readonly kind: 'User' | 'Group'
  readonly name: string
}

const group = (name: string): Subject => ({ kind: 'Group', name })
const anonymous: Subject = { kind: 'User', name: 'system:anonymous' }

/** A Role that lets its subjects read one object, or without a name all of them, and its binding. */
function reading(
  place: { readonly namespace: string; readonly resource: string; readonly name?: string },
  name: string,
  subjects: readonly Subject[],
): KubeObject[] {
  const metadata = { name, namespace: place.namespace }
  return [
    {
      apiVersion,
      kind: 'Role',
      metadata,
      rules: [
        {
          apiGroups: [''],
          resources: [place.resource],
          ...(place.name !== undefined && { resourceNames: [place.name] }),
          verbs: place.name === undefined ? ['get', 'list', 'watch'] : ['get'],
        },
      ],
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects: subjects.map((subject) => ({ apiGroup: rbac, ...subject })),
    },
  ]
}

function bindCluster(name: string, role: string, subject: Subject): KubeObject {
  return {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: rbac, ...subject }],
  }
}

const config = (name: string) => ({ namespace: 'kube-system', resource: 'configmaps', name })
const approval = 'system:certificates.k8s.io:certificatesigningrequests'

const machineRenewal = 'sallyport:machine-renewal'

/**
 * The rights that kubeadm gives to those who join, under its names, and what the seed says of kube-public; and
 * machines that run workloads renew themselves as nodes do.
 */
export const joinPolicy: readonly KubeObject[] = [
  ...reading(
    { ...clusterInfoKey, resource: 'configmaps' },
    'kubeadm:bootstrap-signer-clusterinfo',
    [anonymous],
  ),
  ...reading({ namespace: 'kube-public', resource: 'configmaps' }, 'sallyport:kube-public-reader', [
    group('system:authenticated'),
  ]),
  ...reading(config('kubeadm-config'), 'kubeadm:nodes-kubeadm-config', [
    group(nodeTokenGroup),
    group('system:nodes'),
  ]),
  ...reading(config('kubelet-config'), 'kubeadm:kubelet-config', [
    group(nodeTokenGroup),
    group('system:nodes'),
  ]),
  ...reading(config('kube-proxy'), 'kube-proxy', [group(nodeTokenGroup)]),
  {
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name: 'kubeadm:get-nodes' },
    rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
  },
  bindCluster('kubeadm:get-nodes', 'kubeadm:get-nodes', group(nodeTokenGroup)),
  bindCluster('kubeadm:kubelet-bootstrap', 'system:node-bootstrapper', group(nodeTokenGroup)),
  bindCluster(
    'kubeadm:node-autoapprove-bootstrap',
    `${approval}:nodeclient`,
    group(nodeTokenGroup),
  ),
  bindCluster(
    'kubeadm:node-autoapprove-certificate-rotation',
    `${approval}:selfnodeclient`,
    group('system:nodes'),
  ),
  {
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name: machineRenewal },
    rules: [
      {
        apiGroups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests', 'certificatesigningrequests/selfmachineclient'],
        verbs: ['create'],
      },
    ],
  },
  bindCluster(machineRenewal, machineRenewal, group(machineIdentity.group)),
]
