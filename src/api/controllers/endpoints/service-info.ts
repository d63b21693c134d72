import type { KubeObject } from '../../../core/index.ts'
import {
  fieldsAt,
  flagAt,
  numberAt,
  recordsAt,
  textAt,
  textMapAt,
  textsAt,
} from '../../kinds/fields.ts'
import { parseIp } from '../../validation/ip.ts'

/** The address families that a Service can have. */
export type AddressType = 'IPv4' | 'IPv6'

/** A port of a Service. */
export interface ServicePort {
  readonly name: string
  readonly protocol: string
  readonly appProtocol: string | undefined
  /** A number, or the name that a container gives a port. */
  readonly targetPort: number | string
}

/** What decides about the endpoints of a Service. */
export interface ServiceInfo {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  /** Absent when somebody else looks after the endpoints. */
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly ports: readonly ServicePort[]
  readonly addressTypes: readonly AddressType[]
  /** Has no address of its own. */
  readonly headless: boolean
  readonly publishNotReady: boolean
  readonly externalName: boolean
  readonly deleting: boolean
}

/** The family of an address; `undefined` for what is none. */
export function addressTypeOf(ip: string): AddressType | undefined {
  const parsed = parseIp(ip)
  if (parsed === undefined) return undefined
  return parsed.family === 4 ? 'IPv4' : 'IPv6'
}

const isAddressType = (family: string): family is AddressType =>
  family === 'IPv4' || family === 'IPv6'

function addressTypesOf(families: readonly string[], clusterIp: string): AddressType[] {
  const stated = families.filter(isAddressType)
  if (stated.length > 0) return stated
  const own = addressTypeOf(clusterIp)
  return own === undefined ? ['IPv4', 'IPv6'] : [own]
}

function portsOf(spec: Record<string, unknown>): ServicePort[] {
  return recordsAt(spec, 'ports').map((port) => {
    const targetPort = port['targetPort']
    return {
      name: textAt(port, 'name'),
      protocol: textAt(port, 'protocol') || 'TCP',
      appProtocol: textAt(port, 'appProtocol') || undefined,
      targetPort:
        typeof targetPort === 'number' || (typeof targetPort === 'string' && targetPort !== '')
          ? targetPort
          : (numberAt(port, 'port') ?? 0),
    }
  })
}

/** Reads what decides about the endpoints of a Service. */
export function serviceInfo({ metadata, ...object }: KubeObject): ServiceInfo {
  const spec = fieldsAt(object, 'spec')
  const selector = textMapAt(spec, 'selector')
  const clusterIp = textAt(spec, 'clusterIP')
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    selector: Object.keys(selector).length > 0 ? selector : undefined,
    ports: portsOf(spec),
    addressTypes: addressTypesOf(textsAt(spec, 'ipFamilies'), clusterIp),
    headless: clusterIp === '' || clusterIp === 'None',
    publishNotReady: flagAt(spec, 'publishNotReadyAddresses'),
    externalName: textAt(spec, 'type') === 'ExternalName',
    deleting: metadata.deletionTimestamp !== undefined,
  }
}
