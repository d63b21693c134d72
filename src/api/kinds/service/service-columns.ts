import type { KubeObject } from '../../../core/index.ts'
import { ageColumn, column, nameColumn, wideColumn } from '../columns.ts'
import {
  type Fields,
  fieldsAt,
  numberAt,
  recordsAt,
  textAt,
  textMapAt,
  textsAt,
} from '../fields.ts'
import type { Column } from '../kind-definition.ts'

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
export const serviceColumns: readonly Column[] = [
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
