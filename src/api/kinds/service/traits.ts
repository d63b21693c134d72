import { type Fields, flagAt, textAt, textsAt } from '../fields.ts'

/** True when traffic from outside the cluster can reach the Service. */
export function isExternallyAccessible(spec: Fields): boolean {
  const type = textAt(spec, 'type')
  if (type === 'LoadBalancer' || type === 'NodePort') return true
  return type === 'ClusterIP' && textsAt(spec, 'externalIPs').length > 0
}

/** True when a load balancer must ask each node whether it has endpoints. */
export const needsHealthCheck = (spec: Fields): boolean =>
  textAt(spec, 'type') === 'LoadBalancer' && textAt(spec, 'externalTrafficPolicy') === 'Local'

/** True when the Service has ports on every node. */
export function needsNodePorts(spec: Fields): boolean {
  const type = textAt(spec, 'type')
  if (type === 'NodePort') return true
  const wanted = spec['allocateLoadBalancerNodePorts'] ?? true
  return (
    type === 'LoadBalancer' && (wanted === true || flagAt(spec, 'allocateLoadBalancerNodePorts'))
  )
}
