import { type KubeObject, wellKnown } from '../../core/index.ts'
import { signers } from '../certificate-admission.ts'
import { controllerRoles } from './controller-roles.ts'
import {
  aggregatedRole,
  aggregatesTo,
  bind,
  bindCluster,
  clusterRole,
  group,
  paths,
  read,
  reportEvents,
  role,
  rule,
  systemAccount,
  user,
  write,
} from './rbac-builders.ts'

const csrs = 'certificates.k8s.io'
const authentication = 'authentication.k8s.io'
const authorization = 'authorization.k8s.io'

const healthAndVersion = '/livez /readyz /healthz /version /version/'

const approver = (name: string, signer: string) =>
  clusterRole(`system:certificates.k8s.io:${name}-approver`, [
    rule('approve', csrs, 'signers', signer),
  ])

const viewRules = [
  rule(read, 'core', 'configmaps endpoints pods serviceaccounts services services/status'),
  rule(read, 'core', 'namespaces/status pods/log pods/status'),
  rule(read, 'core', 'namespaces'),
  rule(read, 'core events.k8s.io', 'events'),
  rule(read, 'discovery.k8s.io', 'endpointslices'),
]

const editRules = [
  rule(read, 'core', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'),
  rule('impersonate', 'core', 'serviceaccounts'),
  rule(write, 'core', 'pods pods/attach pods/exec pods/portforward pods/proxy'),
  rule('create', 'core', 'pods/eviction serviceaccounts/token'),
  rule(write, 'core', 'configmaps secrets serviceaccounts services services/proxy'),
  rule(write, 'core events.k8s.io', 'events'),
  rule(`${read} ${write}`, 'coordination.k8s.io', 'leases'),
]

const nodeRules = [
  rule('create', authentication, 'tokenreviews'),
  rule('create', authorization, 'localsubjectaccessreviews subjectaccessreviews'),
  rule(read, 'core', 'services'),
  rule(`create update patch ${read}`, 'core', 'nodes'),
  rule('update patch', 'core', 'nodes/status pods/status'),
  reportEvents,
  rule(`create delete ${read}`, 'core', 'pods'),
  rule('create', 'core', 'pods/eviction serviceaccounts/token'),
  rule(read, 'core', 'configmaps secrets'),
  rule('get', 'core', 'endpoints serviceaccounts'),
  rule(`create ${read}`, csrs, 'certificatesigningrequests'),
  rule('get create update patch delete', 'coordination.k8s.io', 'leases'),
]

const controllerManagerRules = [
  reportEvents,
  rule('create', 'coordination.k8s.io', 'leases'),
  rule('get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'),
  rule('create update', 'core', 'secrets serviceaccounts'),
  rule('delete', 'core', 'secrets'),
  rule('get', 'core', 'configmaps namespaces secrets serviceaccounts'),
  rule('create', authentication, 'tokenreviews'),
  rule('create', authorization, 'subjectaccessreviews'),
  rule('list watch', '*', '*'),
  rule('create', 'core', 'serviceaccounts/token'),
]

/** Kubernetes' default ClusterRoles, as far as they concern our kinds. */
const clusterRoles = [
  clusterRole('cluster-admin', [rule('*', '*', '*'), paths('*', '*')]),
  aggregatedRole('admin'),
  aggregatedRole('edit', aggregatesTo('admin')),
  aggregatedRole('view', aggregatesTo('edit')),
  clusterRole(
    'system:aggregate-to-admin',
    [
      rule('create', authorization, 'localsubjectaccessreviews'),
      rule(`${read} ${write}`, 'rbac.authorization.k8s.io', 'rolebindings roles'),
    ],
    aggregatesTo('admin'),
  ),
  clusterRole('system:aggregate-to-edit', editRules, aggregatesTo('edit')),
  clusterRole('system:aggregate-to-view', viewRules, aggregatesTo('view')),
  clusterRole('system:basic-user', [
    rule('create', authorization, 'selfsubjectaccessreviews selfsubjectrulesreviews'),
    rule('create', authentication, 'selfsubjectreviews'),
  ]),
  clusterRole('system:discovery', [
    paths('get', `${healthAndVersion} /openapi /openapi/* /api /api/* /apis /apis/*`),
  ]),
  clusterRole('system:public-info-viewer', [paths('get', healthAndVersion)]),
  clusterRole('system:monitoring', [
    paths('get', '/metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/*'),
    rule('get', 'core', 'nodes/metrics'),
  ]),
  clusterRole('system:auth-delegator', [
    rule('create', authentication, 'tokenreviews'),
    rule('create', authorization, 'subjectaccessreviews'),
  ]),
  clusterRole('system:service-account-issuer-discovery', [
    paths(
      'get',
      `/.well-known/openid-configuration /.well-known/openid-configuration/
       /openid/v1/jwks /openid/v1/jwks/`,
    ),
  ]),
  clusterRole('system:node', nodeRules),
  clusterRole('system:node-bootstrapper', [
    rule(`create ${read}`, csrs, 'certificatesigningrequests'),
  ]),
  clusterRole('system:node-problem-detector', [
    rule('get', 'core', 'nodes'),
    rule('patch', 'core', 'nodes/status'),
    reportEvents,
  ]),
  clusterRole('system:node-proxier', [
    rule('list watch', 'core', 'endpoints services'),
    rule(read, 'core', 'nodes'),
    reportEvents,
    rule('list watch', 'discovery.k8s.io', 'endpointslices'),
  ]),
  clusterRole('system:kubelet-api-admin', [
    rule(`proxy ${read}`, 'core', 'nodes'),
    rule('*', 'core', 'nodes/log nodes/metrics nodes/proxy nodes/stats'),
    rule('*', 'core', 'nodes/configz nodes/healthz nodes/pods'),
  ]),
  clusterRole('system:kube-aggregator', [rule(read, 'core', 'endpoints services')]),
  clusterRole('system:kube-controller-manager', controllerManagerRules),
  clusterRole('system:kube-dns', [rule('list watch', 'core', 'endpoints services')]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    rule('create', csrs, 'certificatesigningrequests/nodeclient'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    rule('create', csrs, 'certificatesigningrequests/selfnodeclient'),
  ]),
  approver('legacy-unknown', signers.legacyUnknown),
  approver('kubelet-serving', signers.kubeletServing),
  approver('kube-apiserver-client', signers.client),
  approver('kube-apiserver-client-kubelet', signers.kubeletClient),
]

const system = 'kube-system'
const reader = 'extension-apiserver-authentication-reader'
const managerLock = 'system::leader-locking-kube-controller-manager'
const signer = 'system:controller:bootstrap-signer'
const cleaner = 'system:controller:token-cleaner'

/** The default Roles and RoleBindings of `kube-system` and `kube-public` that concern our kinds. */
const namespacedRoles: readonly KubeObject[] = [
  role(system, reader, [rule(read, 'core', 'configmaps', 'extension-apiserver-authentication')]),
  bind(
    system,
    { role: reader, binding: `system::${reader}` },
    user('system:kube-controller-manager'),
    user('system:kube-scheduler'),
  ),
  role(system, managerLock, [rule(`create update ${read}`, 'coordination.k8s.io', 'leases')]),
  bind(
    system,
    { role: managerLock },
    user('system:kube-controller-manager'),
    systemAccount('kube-controller-manager'),
    systemAccount('leader-election-controller'),
  ),
  role(system, signer, [rule(read, 'core', 'secrets')]),
  bind(system, { role: signer }, systemAccount('bootstrap-signer')),
  role(system, cleaner, [rule(`delete ${read}`, 'core', 'secrets'), reportEvents]),
  bind(system, { role: cleaner }, systemAccount('token-cleaner')),
  role('kube-public', signer, [
    rule(read, 'core', 'configmaps'),
    rule('update', 'core', 'configmaps', 'cluster-info'),
    reportEvents,
  ]),
  bind('kube-public', { role: signer }, systemAccount('bootstrap-signer')),
]

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
