import { isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'
import { nameIsDnsLabel } from '../validation/names.ts'
import { defineKind, statusSubresource } from './define-kind.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  isUnset,
  recordsAt,
  setDefault,
  textAt,
} from './fields.ts'
import { serviceColumns } from './service/service-columns.ts'
import { clusterIpChangeProblems } from './service/service-ip-rules.ts'
import {
  serviceChangeProblems,
  validateService,
  validateServiceStatus,
} from './service/service-rules.ts'
import { isExternallyAccessible } from './service/service-traits.ts'
import { reconcileUpdate } from './service/service-update.ts'
import { serviceWarnings } from './service/service-warnings.ts'

const affinitySeconds = 10_800

function affinityDefaults(spec: Fields): void {
  setDefault(spec, 'sessionAffinity', 'None')
  const affinity = textAt(spec, 'sessionAffinity')
  if (affinity === 'None') delete spec['sessionAffinityConfig']
  const clientIp = fieldsAt(fieldsAt(spec, 'sessionAffinityConfig'), 'clientIP')
  if (affinity === 'ClientIP' && isUnset(clientIp['timeoutSeconds'])) {
    spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: affinitySeconds } }
  }
}

function applyDefaults(draft: KubeObject): void {
  const spec = ensureFields(draft, 'spec')
  affinityDefaults(spec)
  setDefault(spec, 'type', 'ClusterIP')
  const type = textAt(spec, 'type')
  for (const port of recordsAt(spec, 'ports')) {
    setDefault(port, 'protocol', 'TCP')
    if (isUnset(port['targetPort']) || port['targetPort'] === 0) port['targetPort'] = port['port']
  }
  if (isExternallyAccessible(spec)) setDefault(spec, 'externalTrafficPolicy', 'Cluster')
  if (['ClusterIP', 'NodePort', 'LoadBalancer'].includes(type)) {
    setDefault(spec, 'internalTrafficPolicy', 'Cluster')
  }
  const balancer = ensureFields(ensureFields(draft, 'status'), 'loadBalancer')
  if (type !== 'LoadBalancer') return
  setDefault(spec, 'allocateLoadBalancerNodePorts', true)
  for (const ingress of recordsAt(balancer, 'ingress')) {
    if (textAt(ingress, 'ip')) setDefault(ingress, 'ipMode', 'VIP')
  }
}

function prepareCreate(draft: KubeObject): void {
  draft['status'] = { loadBalancer: {} }
  const spec = ensureFields(draft, 'spec')
  const single = textAt(spec, 'clusterIP')
  if (single && isUnset(spec['clusterIPs'])) spec['clusterIPs'] = [single]
}

function prepareUpdate(draft: KubeObject, stored: KubeObject): void {
  draft['status'] = isRecord(stored['status']) ? { ...stored['status'] } : {}
  reconcileUpdate(ensureFields(draft, 'spec'), fieldsAt(stored, 'spec'))
  if (textAt(fieldsAt(draft, 'spec'), 'type') !== 'LoadBalancer') {
    ensureFields(draft, 'status')['loadBalancer'] = {}
  }
}

/** A stable address and name for a set of endpoints. */
export const service = defineKind({
  kind: wellKnownKinds.service,
  shortNames: ['svc'],
  returnsDeleted: true,
  categories: ['all'],
  subresources: [statusSubresource({ validate: validateServiceStatus })],
  createOnUpdate: true,
  nameProblems: nameIsDnsLabel,
  selectableFields: {
    'spec.clusterIP': (object) => textAt(fieldsAt(object, 'spec'), 'clusterIP'),
    'spec.type': (object) => textAt(fieldsAt(object, 'spec'), 'type'),
  },
  applyDefaults,
  prepareCreate,
  prepareUpdate,
  validate: validateService,
  validateUpdate: (draft, stored) => [
    ...clusterIpChangeProblems(draft, stored),
    ...serviceChangeProblems(draft, stored),
  ],
  warnings: serviceWarnings,
  columns: serviceColumns,
})
