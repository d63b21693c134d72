import { declaredPorts, type KubeObject, machineOf } from '../../../core/index.ts'
import {
  fieldsAt,
  flagAt,
  numberAt,
  recordsAt,
  textAt,
  textMapAt,
  textsAt,
} from '../../kinds/fields.ts'
import { endpointIpProblems, formatIp, parseIp } from '../../validation/ip.ts'

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

interface NamedPort {
  readonly name: string
  readonly protocol: string
  readonly port: number
}

/** What a Pod contributes to the endpoints of Services. */
export interface PodInfo {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  /** In canonical form. */
  readonly ips: readonly string[]
  readonly ready: boolean
  readonly terminating: boolean
  /** Has run to its end. */
  readonly finished: boolean
  readonly nodeName: string
  readonly hostname: string
  readonly subdomain: string
  readonly namedPorts: readonly NamedPort[]
  /** On this very machine a Service reaches what the Pod declares and nothing else. */
  readonly onlyPorts?: readonly number[]
}

type Fields = Readonly<Record<string, unknown>>

function namedPortsOf(spec: Fields): NamedPort[] {
  const sidecars = recordsAt(spec, 'initContainers').filter(
    (container) => textAt(container, 'restartPolicy') === 'Always',
  )
  return [...recordsAt(spec, 'containers'), ...sidecars].flatMap((container) =>
    recordsAt(container, 'ports')
      .filter((port) => textAt(port, 'name') !== '')
      .map((port) => ({
        name: textAt(port, 'name'),
        protocol: textAt(port, 'protocol') || 'TCP',
        port: numberAt(port, 'containerPort') ?? 0,
      })),
  )
}

/** Whoever writes a Pod's status must not have traffic sent to this machine by way of a Service. */
function ipsOf(status: Fields, isWorkload: boolean): string[] {
  const listed = recordsAt(status, 'podIPs').map((entry) => textAt(entry, 'ip'))
  const texts = new Set([...listed, textAt(status, 'podIP')])
  return [...texts].flatMap((text) => {
    const ip = parseIp(text)
    return ip === undefined || endpointIpProblems(text, isWorkload).length > 0 ? [] : [formatIp(ip)]
  })
}

const isReady = (status: Fields): boolean =>
  recordsAt(status, 'conditions').some(
    (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  )

/** Reads what a Pod contributes to the endpoints of Services. */
export function podInfo(pod: KubeObject): PodInfo {
  const { metadata, ...object } = pod
  const spec = fieldsAt(object, 'spec')
  const status = fieldsAt(object, 'status')
  const phase = textAt(status, 'phase')
  const isWorkload = machineOf(pod) !== undefined
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    ips: ipsOf(status, isWorkload),
    ready: isReady(status),
    terminating: metadata.deletionTimestamp !== undefined,
    finished: phase === 'Succeeded' || phase === 'Failed',
    nodeName: textAt(spec, 'nodeName'),
    hostname: textAt(spec, 'hostname'),
    subdomain: textAt(spec, 'subdomain'),
    namedPorts: namedPortsOf(spec),
    ...(isWorkload && { onlyPorts: [...declaredPorts(pod)] }),
  }
}

const shapes = new WeakMap<PodInfo, string>()

/** The same for Pods that serve the same ports: what is found out about one of them holds for all. */
export function portShape(pod: PodInfo): string {
  const shape = shapes.get(pod) ?? JSON.stringify([pod.namedPorts, pod.onlyPorts])
  shapes.set(pod, shape)
  return shape
}

/** The addresses of a Pod that are of one family; they are in canonical form already. */
export const ipsOfType = ({ ips }: PodInfo, type: AddressType): string[] =>
  ips.filter((ip) => ip.includes(':') === (type === 'IPv6'))

/** Where a Pod serves a port of a Service; `undefined` when it has no such port. */
export function portOnPod({ targetPort, protocol }: ServicePort, pod: PodInfo): number | undefined {
  if (typeof targetPort === 'number')
    return (pod.onlyPorts?.includes(targetPort) ?? true) ? targetPort : undefined
  return pod.namedPorts.find((port) => port.name === targetPort && port.protocol === protocol)?.port
}

/** The Pod's DNS name within a headless Service, if it has one there. */
export const hostnameIn = (service: { readonly name: string }, pod: PodInfo): string | undefined =>
  pod.hostname !== '' && pod.subdomain === service.name ? pod.hostname : undefined

/** The reference from an endpoint to its Pod. */
export const podReference = ({ namespace, name, uid }: PodInfo) => ({
  kind: 'Pod',
  namespace,
  name,
  uid,
})
