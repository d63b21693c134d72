import { declaredPorts, type KubeObject, machineOf } from '../../../core/index.ts'
import { fieldsAt, numberAt, recordsAt, textAt } from '../../kinds/fields.ts'
import { endpointIpProblems, formatIp, parseIp } from '../../validation/ip.ts'
import type { ServicePort } from './service-info.ts'

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
