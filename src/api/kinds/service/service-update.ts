import { carryOver, type Fields, isUnset, numberAt, recordsAt, textAt, textsAt } from '../fields.ts'
import { needsClusterIp, sameTexts } from './service-ip-rules.ts'
import { isExternallyAccessible, needsHealthCheck, needsNodePorts } from './service-traits.ts'

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
export function reconcileUpdate(spec: Fields, old: Fields): void {
  keepAllocated(spec, old)
  for (const [has, fields] of traits) if (has(old) && !has(spec)) dropIfSame(spec, old, fields)
  const hasNodePorts = textAt(spec, 'type') === 'NodePort' || isBalancer(spec)
  if (needsNodePorts(old) && !hasNodePorts) dropNodePorts(spec, old)
}
