import { isRecord, type KubeObject, wellKnownKinds } from '../../../core/index.ts'
import { nameIsDnsLabel } from '../../validation/names.ts'
import {
  ageColumn,
  type Column,
  column,
  defineKind,
  nameColumn,
  statusSubresource,
  wideColumn,
} from '../define-kind.ts'
import {
  carryOver,
  ensureFields,
  type Fields,
  fieldsAt,
  isUnset,
  numberAt,
  recordsAt,
  setDefault,
  textAt,
  textMapAt,
  textsAt,
} from '../fields.ts'
import { clusterIpChangeProblems, needsClusterIp, sameTexts } from './ip-rules.ts'
import {
  serviceChangeProblems,
  serviceWarnings,
  validateService,
  validateServiceStatus,
} from './rules.ts'
import { isExternallyAccessible, needsHealthCheck, needsNodePorts } from './traits.ts'

const specOf = (object: KubeObject): Fields => fieldsAt(object, 'spec')

function balancerAddresses(object: KubeObject): string[] {
  const points = recordsAt(fieldsAt(fieldsAt(object, 'status'), 'loadBalancer'), 'ingress')
  const shown = points.map((point) => textAt(point, 'ip') || textAt(point, 'hostname'))
  return [...new Set(shown.filter(Boolean))].sort()
}

function externalIpOf(object: KubeObject): string {
  const spec = specOf(object)
  const external = textsAt(spec, 'externalIPs')
  switch (textAt(spec, 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || '<none>'
    case 'LoadBalancer':
      return [...balancerAddresses(object), ...external].join(',') || '<pending>'
    case 'ExternalName':
      return textAt(spec, 'externalName')
    default:
      return '<unknown>'
  }
}

function shownPort(port: Fields): string {
  const nodePort = numberAt(port, 'nodePort')
  const number = numberAt(port, 'port') ?? 0
  const shown = nodePort ? `${number}:${nodePort}` : String(number)
  return `${shown}/${textAt(port, 'protocol')}`
}

function selectorOf(object: KubeObject): string {
  const pairs = Object.entries(textMapAt(specOf(object), 'selector'))
  const shown = pairs.map(([key, value]) => `${key}=${value}`).sort()
  return shown.join(',') || '<none>'
}

/** What `kubectl get services` shows. */
const serviceColumns: readonly Column[] = [
  nameColumn,
  column('Type', 'How the service is exposed.', (object) => textAt(specOf(object), 'type')),
  column(
    'Cluster-IP',
    'Address inside the cluster.',
    (object) => textsAt(specOf(object), 'clusterIPs')[0] ?? '<none>',
  ),
  column('External-IP', 'Addresses for the outside.', externalIpOf),
  column(
    'Port(s)',
    'Ports and protocols.',
    (object) => recordsAt(specOf(object), 'ports').map(shownPort).join(',') || '<none>',
  ),
  ageColumn,
  wideColumn('Selector', 'Labels of the pods behind it.', selectorOf),
]

/** Whoever sends the same manifest again means the address that was allocated for it. */
function keepAddresses(spec: Fields, old: Fields): void {
  if (isUnset(spec['clusterIP'])) carryOver(spec, old, 'clusterIP')
  if (textsAt(spec, 'clusterIPs').length === 0) carryOver(spec, old, 'clusterIPs')
  const [single, before] = [textAt(spec, 'clusterIP'), textAt(old, 'clusterIP')]
  const samePlural = sameTexts(textsAt(spec, 'clusterIPs'), textsAt(old, 'clusterIPs'))
  // Only the singular field was changed: the list follows.
  if (single !== before && samePlural && single) spec['clusterIPs'] = [single]
}

function keepNodePorts(spec: Fields, old: Fields): void {
  const portsOf = (one: Fields) =>
    recordsAt(one, 'ports').map((port) => numberAt(port, 'nodePort') ?? 0)
  const named = new Set(portsOf(spec))
  const byName = new Map(
    recordsAt(old, 'ports').map((port) => [textAt(port, 'name'), numberAt(port, 'nodePort') ?? 0]),
  )
  for (const port of recordsAt(spec, 'ports')) {
    const known = byName.get(textAt(port, 'name')) ?? 0
    if ((numberAt(port, 'nodePort') ?? 0) === 0 && known > 0 && !named.has(known)) {
      port['nodePort'] = known
    }
  }
}

function dropNodePorts(spec: Fields, old: Fields): void {
  const known = new Set(recordsAt(old, 'ports').map((port) => numberAt(port, 'nodePort') ?? 0))
  const ports = recordsAt(spec, 'ports')
  const isNew = ports.some(
    (port) => !known.has(numberAt(port, 'nodePort') ?? 0) && port['nodePort'],
  )
  if (isNew) return
  for (const port of ports) delete port['nodePort']
}

/** Drops a field that no longer applies, unless the sender changed it and must hear about it. */
function dropIfSame(spec: Fields, old: Fields, keys: readonly string[]): void {
  for (const key of keys) {
    if (JSON.stringify(spec[key]) === JSON.stringify(old[key])) delete spec[key]
  }
}

/** Carries over what was allocated and the sender left out. */
function keepAllocated(spec: Fields, old: Fields): void {
  if (needsClusterIp(old) && needsClusterIp(spec)) keepAddresses(spec, old)
  if (needsNodePorts(old) && needsNodePorts(spec)) keepNodePorts(spec, old)
  if (needsHealthCheck(old) && needsHealthCheck(spec) && !numberAt(spec, 'healthCheckNodePort')) {
    carryOver(spec, old, 'healthCheckNodePort')
  }
}

const addressFields = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']
const balancerFields = ['allocateLoadBalancerNodePorts', 'loadBalancerClass']
const isBalancer = (spec: Fields): boolean => textAt(spec, 'type') === 'LoadBalancer'

/** Each trait that a change of type can take away, and the fields that go with it. */
const traits: readonly [(spec: Fields) => boolean, readonly string[]][] = [
  [needsClusterIp, addressFields],
  [needsHealthCheck, ['healthCheckNodePort']],
  [isBalancer, balancerFields],
  [isExternallyAccessible, ['externalTrafficPolicy']],
]

/** Completes a changed Service from the stored one, as Kubernetes guesses what its sender means. */
function reconcileUpdate(spec: Fields, old: Fields): void {
  keepAllocated(spec, old)
  for (const [has, fields] of traits) if (has(old) && !has(spec)) dropIfSame(spec, old, fields)
  const hasNodePorts = textAt(spec, 'type') === 'NodePort' || isBalancer(spec)
  if (needsNodePorts(old) && !hasNodePorts) dropNodePorts(spec, old)
}

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
