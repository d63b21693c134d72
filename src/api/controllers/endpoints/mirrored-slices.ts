import type { KubeObject } from '../../../core/index.ts'
import { type Fields, numberAt, recordsAt, textAt } from '../../kinds/fields.ts'
import { formatIp, parseIp } from '../../validation/ip.ts'
import {
  type Endpoint,
  type EndpointGroup,
  type EndpointPort,
  groupKey,
  type SliceTemplate,
  sliceLabels,
} from './plan-slices.ts'
import { addressTypeOf } from './pod-and-service.ts'

/** How many addresses of a subset are mirrored. */
export const maxMirrored = 1000

const managedBy = 'endpointslicemirroring-controller.k8s.io'
const skipMirror = 'endpointslice.kubernetes.io/skip-mirror'
const leaderElection = 'control-plane.alpha.kubernetes.io/leader'
const notCopied = new Set([
  'endpoints.kubernetes.io/last-change-trigger-time',
  'kubectl.kubernetes.io/last-applied-configuration',
])

/** Whether a slice mirrors a hand-written Endpoints object. */
export const isMirroredSlice = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[sliceLabels.managedBy] === managedBy

/** Whether an Endpoints object is to be mirrored, as far as it is up to itself. */
export function wantsMirror({ metadata }: KubeObject): boolean {
  const { labels = {}, annotations = {} } = metadata
  return labels[skipMirror] !== 'true' && !Object.hasOwn(annotations, leaderElection)
}

/** What all slices that mirror an Endpoints object have in common. */
export function mirroredTemplate({ metadata }: KubeObject): SliceTemplate {
  const annotations = Object.entries(metadata.annotations ?? {})
  return {
    namespace: metadata.namespace ?? '',
    generateName: `${metadata.name}-`,
    labels: {
      ...metadata.labels,
      [sliceLabels.serviceName]: metadata.name,
      [sliceLabels.managedBy]: managedBy,
    },
    annotations: Object.fromEntries(annotations.filter(([key]) => !notCopied.has(key))),
    owner: {
      apiVersion: 'v1',
      kind: 'Endpoints',
      name: metadata.name,
      uid: metadata.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    },
  }
}

function portOf(port: Fields): EndpointPort {
  const appProtocol = textAt(port, 'appProtocol')
  return {
    name: textAt(port, 'name'),
    port: numberAt(port, 'port') ?? 0,
    protocol: textAt(port, 'protocol') || 'TCP',
    ...(appProtocol !== '' && { appProtocol }),
  }
}

function endpointOf(address: Fields, ready: boolean): Endpoint | undefined {
  const ip = parseIp(textAt(address, 'ip'))
  if (ip === undefined) return undefined
  const hostname = textAt(address, 'hostname')
  const nodeName = textAt(address, 'nodeName')
  return {
    addresses: [formatIp(ip)],
    conditions: { ready },
    ...(hostname !== '' && { hostname }),
    ...(nodeName !== '' && { nodeName }),
    ...(address['targetRef'] !== undefined && { targetRef: address['targetRef'] }),
  }
}

const endpointsIn = (subset: Fields): Endpoint[] =>
  [
    ...recordsAt(subset, 'addresses').map((address) => endpointOf(address, true)),
    ...recordsAt(subset, 'notReadyAddresses').map((address) => endpointOf(address, false)),
  ]
    .filter((endpoint) => endpoint !== undefined)
    .slice(0, maxMirrored)

/** The endpoints of a hand-written Endpoints object, in groups that can share slices. */
export function mirroredGroups(endpoints: KubeObject): EndpointGroup[] {
  const groups = new Map<string, EndpointGroup & { endpoints: Endpoint[] }>()
  for (const subset of recordsAt(endpoints, 'subsets')) {
    const ports = recordsAt(subset, 'ports').map(portOf)
    for (const endpoint of endpointsIn(subset)) {
      const addressType = addressTypeOf(endpoint.addresses[0] ?? '')
      if (addressType === undefined) continue
      const key = groupKey(addressType, ports)
      const group = groups.get(key) ?? { addressType, ports, endpoints: [] }
      groups.set(key, group)
      group.endpoints.push(endpoint)
    }
  }
  return [...groups.values()]
}
