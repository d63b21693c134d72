import { isRecord, type KubeObject } from '../../../core/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { cidrProblems, endpointIpProblems, ipProblems, ipWarnings } from '../../validation/ip.ts'
import { labelProblems, qualifiedNameProblems } from '../../validation/metadata.ts'
import { dns1123SubdomainProblems } from '../../validation/names.ts'
import { portNumberProblems } from '../../validation/quantities.ts'
import {
  type Fields,
  fieldsAt,
  isUnset,
  numberAt,
  recordsAt,
  textAt,
  textMapAt,
  textsAt,
} from '../fields.ts'
import { clusterIpProblems, isHeadless } from './ip-rules.ts'
import { duplicatePortProblems, nodePortProblems, portsProblems } from './port-rules.ts'
import { isExternallyAccessible, needsHealthCheck } from './traits.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const onlyForLoadBalancers = "may only be used when `type` is 'LoadBalancer'"
const sourceRangesAnnotation = 'service.beta.kubernetes.io/load-balancer-source-ranges'

/** A value out of a fixed set, which must be there unless `optional`. */
function choiceProblems(
  spec: Fields,
  key: string,
  allowed: readonly string[],
  optional = false,
): FieldProblem[] {
  const value = textAt(spec, key)
  if (value === '') return optional ? [] : [required(`spec.${key}`)]
  return allowed.includes(value) ? [] : [notSupported(`spec.${key}`, value, allowed)]
}

function externalNameProblems(spec: Fields): FieldProblem[] {
  const words = 'may not be set for ExternalName services'
  const name = textAt(spec, 'externalName').replace(/\.$/, '')
  return [
    ...(textsAt(spec, 'clusterIPs').length > 0 ? [forbiddenValue('spec.clusterIPs', words)] : []),
    ...(textsAt(spec, 'ipFamilies').length > 0 ? [forbiddenValue('spec.ipFamilies', words)] : []),
    ...(isUnset(spec['ipFamilyPolicy']) ? [] : [forbiddenValue('spec.ipFamilyPolicy', words)]),
    ...(name
      ? invalidEach('spec.externalName', name, dns1123SubdomainProblems(name))
      : [required('spec.externalName')]),
  ]
}

function typeProblems(spec: Fields): FieldProblem[] {
  const type = textAt(spec, 'type')
  if (type === 'ExternalName') return externalNameProblems(spec)
  if ((type !== 'LoadBalancer' && type !== 'NodePort') || !isHeadless(spec)) return []
  const words = `may not be set to 'None' for ${type} services`
  return [invalidValue('spec.clusterIPs[0]', 'None', words)]
}

function affinityTimeoutProblems(spec: Fields): FieldProblem[] {
  const clientIp = fieldsAt(fieldsAt(spec, 'sessionAffinityConfig'), 'clientIP')
  const seconds = numberAt(clientIp, 'timeoutSeconds')
  if (seconds === undefined || (seconds > 0 && seconds <= 86_400)) return []
  const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds'
  return [invalidValue(field, seconds, 'must be greater than 0 and less than 86400')]
}

function affinityProblems(spec: Fields): FieldProblem[] {
  const affinity = textAt(spec, 'sessionAffinity')
  const words = 'must not be set when session affinity is None'
  return [
    ...choiceProblems(spec, 'sessionAffinity', ['ClientIP', 'None']),
    ...(affinity === 'ClientIP' ? affinityTimeoutProblems(spec) : []),
    ...(affinity === 'None' && isRecord(spec['sessionAffinityConfig'])
      ? [forbiddenValue('spec.sessionAffinityConfig', words)]
      : []),
  ]
}

const externalIpProblems = (spec: Fields): FieldProblem[] =>
  problemsOfEach(textsAt(spec, 'externalIPs'), (ip, index) => {
    const spelling = ipProblems(ip)
    const words = spelling.length > 0 ? spelling : endpointIpProblems(ip, false)
    return invalidEach(`spec.externalIPs[${index}]`, ip, words)
  })

function sourceRangeProblems(draft: KubeObject, spec: Fields): FieldProblem[] {
  const ranges = textsAt(spec, 'loadBalancerSourceRanges').map((range) => range.trim())
  const misplaced = textAt(spec, 'type') !== 'LoadBalancer'
  // Kubernetes spells this one field with a capital letter.
  const field = 'spec.LoadBalancerSourceRanges'
  if (ranges.length > 0) {
    return [
      ...(misplaced ? [forbiddenValue(field, onlyForLoadBalancers)] : []),
      ...problemsOfEach(ranges, (range, index) =>
        invalidEach(`${field}[${index}]`, range, cidrProblems(range)),
      ),
    ]
  }
  const noted = draft.metadata.annotations?.[sourceRangesAnnotation]
  if (noted === undefined) return []
  const at = `metadata.annotations[${sourceRangesAnnotation}]`
  const listed = noted.trim() === '' ? [] : noted.split(',').map((range) => range.trim())
  return [
    ...(misplaced ? [forbiddenValue(at, onlyForLoadBalancers)] : []),
    ...problemsOfEach(listed, (range) => invalidEach(at, range, cidrProblems(range))),
  ]
}

function loadBalancerProblems(spec: Fields): FieldProblem[] {
  const isLoadBalancer = textAt(spec, 'type') === 'LoadBalancer'
  const name = spec['loadBalancerClass']
  const field = 'spec.loadBalancerClass'
  const problems =
    isUnset(spec['allocateLoadBalancerNodePorts']) || isLoadBalancer
      ? []
      : [forbiddenValue('spec.allocateLoadBalancerNodePorts', onlyForLoadBalancers)]
  if (typeof name !== 'string') return problems
  return isLoadBalancer
    ? [...problems, ...invalidEach(field, name, qualifiedNameProblems(name))]
    : [...problems, forbiddenValue(field, onlyForLoadBalancers)]
}

function healthCheckProblems(spec: Fields): FieldProblem[] {
  const field = 'spec.healthCheckNodePort'
  const port = numberAt(spec, 'healthCheckNodePort') ?? 0
  if (port === 0) return []
  if (needsHealthCheck(spec)) return invalidEach(field, port, portNumberProblems(port))
  const words =
    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
  return [invalidValue(field, port, words)]
}

function externalPolicyProblems(spec: Fields): FieldProblem[] {
  const policy = textAt(spec, 'externalTrafficPolicy')
  if (isExternallyAccessible(spec)) {
    return choiceProblems(spec, 'externalTrafficPolicy', ['Cluster', 'Local'])
  }
  const words = 'may only be set for externally-accessible services'
  return policy === '' ? [] : [invalidValue('spec.externalTrafficPolicy', policy, words)]
}

const isPresent = (spec: Fields): boolean =>
  recordsAt(spec, 'ports').length > 0 || isHeadless(spec) || textAt(spec, 'type') === 'ExternalName'

/** Every problem of a Service, in Kubernetes' order. */
export function validateService(draft: KubeObject): FieldProblem[] {
  const spec = fieldsAt(draft, 'spec')
  const ports = recordsAt(spec, 'ports')
  const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
  return [
    ...(isPresent(spec) ? [] : [required('spec.ports')]),
    ...typeProblems(spec),
    ...portsProblems(ports),
    ...labelProblems(textMapAt(spec, 'selector'), 'spec.selector'),
    ...affinityProblems(spec),
    ...clusterIpProblems(spec),
    ...externalIpProblems(spec),
    ...choiceProblems(spec, 'type', types),
    ...nodePortProblems(spec, ports),
    ...duplicatePortProblems(ports),
    ...sourceRangeProblems(draft, spec),
    ...loadBalancerProblems(spec),
    ...externalPolicyProblems(spec),
    ...healthCheckProblems(spec),
    ...choiceProblems(spec, 'internalTrafficPolicy', ['Cluster', 'Local'], true),
    ...choiceProblems(spec, 'trafficDistribution', distributions, true),
  ]
}

function ingressProblems(ingress: Fields, field: string): FieldProblem[] {
  const [ip, mode, host] = [
    textAt(ingress, 'ip'),
    textAt(ingress, 'ipMode'),
    textAt(ingress, 'hostname'),
  ]
  const modes = ['Proxy', 'VIP']
  const modeProblems = ip
    ? modes.includes(mode)
      ? []
      : [notSupported(`${field}.ipMode`, mode, modes)]
    : mode
      ? [forbiddenValue(`${field}.ipMode`, 'may not be specified when `ip` is not set')]
      : []
  const isIp = host !== '' && ipProblems(host).length === 0
  return [
    ...(ip ? invalidEach(`${field}.ip`, ip, ipProblems(ip)) : []),
    ...modeProblems,
    ...(host ? invalidEach(`${field}.hostname`, host, dns1123SubdomainProblems(host)) : []),
    ...(isIp
      ? [invalidValue(`${field}.hostname`, host, 'must be a DNS name, not an IP address')]
      : []),
  ]
}

/** Every problem of the `status` of a Service. */
export function validateServiceStatus(draft: KubeObject): FieldProblem[] {
  const field = 'status.loadBalancer.ingress'
  const ingress = recordsAt(fieldsAt(fieldsAt(draft, 'status'), 'loadBalancer'), 'ingress')
  if (ingress.length > 0 && textAt(fieldsAt(draft, 'spec'), 'type') !== 'LoadBalancer') {
    return [forbiddenValue(field, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  return problemsOfEach(ingress, (point, index) => ingressProblems(point, `${field}[${index}]`))
}

/** Problems of a change that are not about addresses. */
export function serviceChangeProblems(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [spec, old] = [fieldsAt(draft, 'spec'), fieldsAt(stored, 'spec')]
  const bothBalanced = [spec, old].every((one) => textAt(one, 'type') === 'LoadBalancer')
  const bothChecked = needsHealthCheck(spec) && needsHealthCheck(old)
  const port = (one: Fields) => numberAt(one, 'healthCheckNodePort') ?? 0
  const name = spec['loadBalancerClass'] ?? null
  return [
    ...(bothBalanced && name !== (old['loadBalancerClass'] ?? null)
      ? [invalidValue('spec.loadBalancerClass', name, 'may not change once set')]
      : []),
    ...(bothChecked && port(spec) !== port(old)
      ? [forbiddenValue('spec.healthCheckNodePort', 'field is immutable')]
      : []),
  ]
}

const hintsAnnotation = 'service.kubernetes.io/topology-aware-hints'

function headlessWarnings(spec: Fields): string[] {
  if (!isHeadless(spec)) return []
  const ignored = [
    ...(textAt(spec, 'loadBalancerIP') ? ['loadBalancerIP'] : []),
    ...(textsAt(spec, 'externalIPs').length > 0 ? ['externalIPs'] : []),
    ...(textAt(spec, 'sessionAffinity') === 'None' ? [] : ['SessionAffinity']),
  ]
  return ignored.map((field) => `spec.${field} is ignored for headless services`)
}

function externalWarnings(spec: Fields): string[] {
  const isAlias = textAt(spec, 'type') === 'ExternalName'
  const ips = textsAt(spec, 'externalIPs')
  const isUsed = ips.length > 0 && !isAlias && !isHeadless(spec)
  return [
    ...ips.flatMap((ip, index) => ipWarnings(ip, `spec.externalIPs[${index}]`)),
    ...(isUsed
      ? ['spec.externalIPs is deprecated and may no longer be implemented in some clusters']
      : []),
    ...(isAlias && ips.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : []),
    ...(!isAlias && textAt(spec, 'externalName')
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ]
}

/** What Kubernetes tells the writer of a Service that it nevertheless accepts. */
export function serviceWarnings(draft: KubeObject): string[] {
  const spec = fieldsAt(draft, 'spec')
  const hints = draft.metadata.annotations?.[hintsAnnotation]
  return [
    ...(hints === undefined
      ? []
      : [
          `annotation ${hintsAnnotation} is deprecated, please use service.kubernetes.io/topology-mode instead`,
        ]),
    ...textsAt(spec, 'clusterIPs').flatMap((ip, index) =>
      ipWarnings(ip, `spec.clusterIPs[${index}]`),
    ),
    ...headlessWarnings(spec),
    ...externalWarnings(spec),
    ...(textAt(spec, 'trafficDistribution') === 'PreferClose'
      ? ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']
      : []),
  ]
}
