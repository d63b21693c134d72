import {
  badRequest,
  isWorkloadPlace,
  type KubeObject,
  notFound,
  wellKnownKinds,
} from '../../../core/index.ts'
import { isDialable } from './address-guard.ts'
import type { ProxyBackend } from './backend.ts'
import { fieldsAt, listAt, numberAt, textAt } from './fields.ts'
import { type ProxyTarget, portNumber } from './proxy-target.ts'
import type { TargetSource } from './target-source.ts'

const defaultPort = { http: 80, https: 443 } as const

/** The addresses that a Pod has been given. */
function podAddresses(pod: KubeObject): string[] {
  const status = fieldsAt(pod, 'status')
  const first = textAt(status, 'podIP')
  const all = listAt(status, 'podIPs').map((each) => textAt(each, 'ip'))
  return [...new Set([first, ...all])].filter((address) => address !== '')
}

/** Whether a Pod may be dialled there: at an address of the network, or where `workload run` has put it. */
export const mayDialPod = (pod: KubeObject, place: { ip: string; port: number }): boolean =>
  podAddresses(pod).includes(place.ip) && (isDialable(place.ip) || isWorkloadPlace(pod, place))

/** Where a Pod is reached. */
export async function podBackend(
  targets: TargetSource,
  target: ProxyTarget,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const { namespace, name, scheme } = target
  const pod = await targets.get(wellKnownKinds.pod, { namespace, name }, signal)
  if (!pod) throw notFound(wellKnownKinds.pod, name)
  const port = portOf(pod, target)
  const [ip = ''] = podAddresses(pod)
  if (!mayDialPod(pod, { ip, port })) throw badRequest('address not allowed')
  return { scheme, host: ip, port }
}

function portOf(pod: KubeObject, { port, scheme, name }: ProxyTarget): number {
  const ports = listAt(fieldsAt(pod, 'spec'), 'containers').flatMap((each) => listAt(each, 'ports'))
  if (port === '') return numberAt(ports[0] ?? {}, 'containerPort') ?? defaultPort[scheme]
  const named = ports.find((each) => textAt(each, 'name') === port)
  const number = portNumber(port) ?? (named && numberAt(named, 'containerPort'))
  if (number === undefined) throw badRequest(`pod ${name} has no port ${JSON.stringify(port)}`)
  return number
}
