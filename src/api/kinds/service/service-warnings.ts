import type { KubeObject } from '../../../core/index.ts'
import { ipWarnings } from '../../validation/ip.ts'
import { type Fields, fieldsAt, textAt, textsAt } from '../fields.ts'
import { isHeadless } from './service-ip-rules.ts'

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
