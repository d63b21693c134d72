import type { UserInfo } from './auth.ts'
import { isRecord, type KubeObject } from './kube-object.ts'

/**
 * The label on what `workload run` has registered; its value is the machine. Admission lets nobody but
 * the identity of that machine write it, or write what carries it.
 */
export const workloadMark = 'sallyport.dev/workload'

/** Names of the identities under which machines run workloads. */
export const machineIdentity = {
  userPrefix: 'system:sallyport:machine:',
  group: 'system:sallyport:machines',
  /** Of those on the server's own machine: what they say of loopback is true there too. */
  loopbackGroup: 'system:sallyport:loopback-machines',
} as const

/**
 * The name of the machine whose identity `user` is; empty when it is a machine that names none;
 * `undefined` when it is no machine.
 */
export function machineNameOf(user: UserInfo): string | undefined {
  if (!user.username.startsWith(machineIdentity.userPrefix)) return undefined
  if (!user.groups.includes(machineIdentity.group)) return undefined
  return user.username.slice(machineIdentity.userPrefix.length)
}

/** The machine that registered an object by `workload run`; `undefined` when none did. */
export const machineOf = ({ metadata }: KubeObject): string | undefined =>
  metadata.labels?.[workloadMark]

/** The ports that a Pod says it serves; all that may be asked of a process on this very machine. */
export function declaredPorts(pod: KubeObject): Set<number> {
  const containers = listAt(recordAt(pod, 'spec'), 'containers')
  const ports = containers.flatMap((container) => listAt(container, 'ports'))
  return new Set(
    ports.flatMap(({ containerPort }) => (typeof containerPort === 'number' ? containerPort : [])),
  )
}

/**
 * Whether `workload run` registered a process at this very address and port. Only then may something
 * on loopback be dialled: a Service can name any port, and a machine has more of them than its workloads.
 */
export function isWorkloadPlace(pod: KubeObject, place: { ip: string; port: number }): boolean {
  const status = recordAt(pod, 'status')
  const ips = [status['podIP'], ...listAt(status, 'podIPs').map(({ ip }) => ip)]
  return (
    machineOf(pod) !== undefined && ips.includes(place.ip) && declaredPorts(pod).has(place.port)
  )
}

const recordAt = (object: Readonly<Record<string, unknown>>, field: string) => {
  const value = object[field]
  return isRecord(value) ? value : {}
}

function listAt(object: Readonly<Record<string, unknown>>, field: string) {
  const value = object[field]
  return Array.isArray(value) ? value.filter(isRecord) : []
}
