import type { KubeObject } from '../../core/index.ts'
import { signers } from '../certificate-admission.ts'
import type { PolicyRule } from '../rbac-objects.ts'
import {
  bindCluster,
  clusterRole,
  read,
  reportEvents,
  rule,
  systemAccount,
} from './rbac-builders.ts'

const csrs = 'certificates.k8s.io'
const slices = rule(`create update delete ${read}`, 'discovery.k8s.io', 'endpointslices')

/** Each controller's rules; role and binding carry its name, its service account too. */
const controllers: Readonly<Record<string, readonly PolicyRule[]>> = {
  'certificate-controller': [
    rule(`delete ${read}`, csrs, 'certificatesigningrequests'),
    rule('update', csrs, 'certificatesigningrequests/approval certificatesigningrequests/status'),
    rule('approve', csrs, 'signers', signers.kubeletClient),
    rule('sign', csrs, 'signers', Object.values(signers).join(' ')),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    reportEvents,
  ],
  'clusterrole-aggregation-controller': [
    rule(`escalate patch update ${read}`, 'rbac.authorization.k8s.io', 'clusterroles'),
  ],
  'endpoint-controller': [
    rule(read, 'core', 'pods services'),
    rule(`create update delete ${read}`, 'core', 'endpoints'),
    rule('create', 'core', 'endpoints/restricted'),
    reportEvents,
  ],
  'endpointslice-controller': [
    rule(read, 'core', 'nodes pods services'),
    rule('update', 'core', 'services/finalizers'),
    slices,
    reportEvents,
  ],
  'endpointslicemirroring-controller': [
    rule(read, 'core', 'endpoints services'),
    rule('update', 'core', 'endpoints/finalizers services/finalizers'),
    slices,
    reportEvents,
  ],
  'generic-garbage-collector': [rule(`delete patch update ${read}`, '*', '*'), reportEvents],
  'namespace-controller': [
    rule(`delete ${read}`, 'core', 'namespaces'),
    rule('update', 'core', 'namespaces/finalize namespaces/status'),
    rule(`delete deletecollection ${read}`, '*', '*'),
  ],
  'node-controller': [
    rule(`delete patch update ${read}`, 'core', 'nodes'),
    rule('patch update', 'core', 'nodes/status pods/status'),
    rule(`delete ${read}`, 'core', 'pods'),
    reportEvents,
  ],
  'pod-garbage-collector': [
    rule('delete list watch', 'core', 'pods'),
    rule(read, 'core', 'nodes'),
    rule('patch', 'core', 'pods/status'),
  ],
  'root-ca-cert-publisher': [rule('create update', 'core', 'configmaps'), reportEvents],
  'service-account-controller': [rule('create', 'core', 'serviceaccounts'), reportEvents],
  'service-controller': [
    rule(read, 'core', 'services'),
    rule('patch update', 'core', 'services/status'),
    rule('list watch', 'core', 'nodes'),
    reportEvents,
  ],
}

/** The roles of Kubernetes' controllers that work on our kinds, each with its binding. */
export const controllerRoles: readonly KubeObject[] = Object.entries(controllers).flatMap(
  ([name, rules]) => [
    clusterRole(`system:controller:${name}`, rules),
    bindCluster(`system:controller:${name}`, systemAccount(name)),
  ],
)
