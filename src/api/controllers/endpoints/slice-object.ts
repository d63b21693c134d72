import type { KubeObject, OwnerReference } from '../../../core/index.ts'
import { type Fields, recordsAt, textAt } from '../../kinds/fields.ts'
import type { AddressType } from './service-info.ts'

/** Labels that tell to which Service a slice belongs and who looks after it. */
export const sliceLabels = {
  serviceName: 'kubernetes.io/service-name',
  managedBy: 'endpointslice.kubernetes.io/managed-by',
  headless: 'service.kubernetes.io/headless',
} as const

/** One address behind a Service, as a slice writes it. */
export interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions: {
    readonly ready: boolean
    readonly serving?: boolean
    readonly terminating?: boolean
  }
  readonly hostname?: string
  readonly nodeName?: string
  readonly zone?: string
  readonly targetRef?: unknown
}

/** A port behind a Service, as a slice writes it. */
export interface EndpointPort {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly appProtocol?: string
}

/** Endpoints that share their ports and address family, and so can share slices. */
export interface EndpointGroup {
  readonly addressType: AddressType
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
}

/** What the slices of one Service have in common. */
export interface SliceTemplate {
  readonly namespace: string
  readonly generateName: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly owner: OwnerReference
}

/** Groups slices and endpoints: the same key for the same ports in whatever order. */
export function groupKey(addressType: string, ports: readonly object[]): string {
  const shown = ports.map((port) => {
    const fields: Fields = { ...port }
    const texts = ['name', 'protocol', 'appProtocol'].map((field) => textAt(fields, field))
    return JSON.stringify([...texts, fields['port']])
  })
  return `${addressType} ${shown.toSorted().join(' ')}`
}

/** The group that an existing slice belongs to. */
export const groupKeyOf = (slice: KubeObject): string =>
  groupKey(textAt(slice, 'addressType'), recordsAt(slice, 'ports'))

/** The addresses of an existing slice. */
export const endpointsOf = (slice: KubeObject): Fields[] => recordsAt(slice, 'endpoints')

/** Builds a slice, new or in the place of an existing one. */
export function buildSlice(
  template: SliceTemplate,
  group: EndpointGroup,
  existing?: KubeObject,
): KubeObject {
  const { namespace, generateName, labels, annotations, owner } = template
  const metadata = existing?.metadata ?? { name: '', generateName, namespace }
  const { annotations: _, ...kept } = metadata
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...kept,
      labels: { ...labels },
      ...(Object.keys(annotations).length > 0 && { annotations: { ...annotations } }),
      ownerReferences: [owner],
    },
    addressType: group.addressType,
    endpoints: [...group.endpoints],
    ports: [...group.ports],
  }
}
