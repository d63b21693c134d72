import { randomInt } from 'node:crypto'
import { ApiError, goQuote, type KubeObject, wellKnownKinds } from '../../../core/index.ts'
import type { BackendTrust, ProxyBackend } from './backend.ts'
import { type Fields, fieldsAt, listAt, numberAt, textAt, textsAt } from './fields.ts'
import { mayDialPod } from './pod-backend.ts'
import type { ProxyTarget } from './proxy-target.ts'
import type { TargetSource } from './target-source.ts'

/** Annotations by which a Service says how its backends are verified. */
const trustAnnotations = {
  ca: 'sallyport.dev/backend-ca',
  serverName: 'sallyport.dev/backend-server-name',
} as const

/** A ready endpoint and the Pod that it claims to be. */
interface Candidate {
  readonly ip: string
  readonly port: number
  readonly podName: string
}

/**
 * One ready endpoint of a Service, chosen anew for every request. An endpoint counts only if the Pod that it names
 * is in the same namespace and has the address itself: whoever may write endpoints may not choose whom we dial.
 */
export async function serviceBackend(
  targets: TargetSource,
  target: ProxyTarget,
  service: KubeObject,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const { id, namespace, name, scheme } = target
  const portName = portNameOf(service, target)
  const slices = await targets.slices(namespace, name, signal)
  for (const slice of inRandomOrder(service, slices)) {
    for (const { ip, port, podName } of candidatesOf(slice, portName, namespace)) {
      const pod = await targets.get(wellKnownKinds.pod, { namespace, name: podName }, signal)
      if (!pod || !mayDialPod(pod, { ip, port })) continue
      const trust = scheme === 'https' ? trustOf(service, target) : undefined
      return { scheme, host: ip, port, ...(trust && { trust }) }
    }
  }
  throw unavailable(`no endpoints available for service ${goQuote(id)}`)
}

const unavailable = (message: string): ApiError => new ApiError('ServiceUnavailable', message)

/** A number stands for the name of the port that has it; nothing stands for the port without a name. */
function portNameOf(service: KubeObject, { port, name }: ProxyTarget): string {
  if (!/^\d+$/.test(port)) return port
  const ports = listAt(fieldsAt(service, 'spec'), 'ports')
  const found = ports.find((each) => numberAt(each, 'port') === Number(port))
  if (!found) throw unavailable(`no service port ${port} found for service ${goQuote(name)}`)
  return textAt(found, 'name')
}

/** The first family of the Service comes first. */
function inRandomOrder(service: KubeObject, slices: readonly KubeObject[]): KubeObject[] {
  const [family = 'IPv4'] = textsAt(fieldsAt(service, 'spec'), 'ipFamilies')
  const rank = (slice: KubeObject): number => (textAt(slice, 'addressType') === family ? 0 : 1)
  return shuffled(slices).sort((a, b) => rank(a) - rank(b))
}

function shuffled<T>(items: readonly T[]): T[] {
  const all = [...items]
  for (let last = all.length - 1; last > 0; last--) {
    const other = randomInt(last + 1)
    const held = all[last]
    const taken = all[other]
    if (held === undefined || taken === undefined) continue
    all[last] = taken
    all[other] = held
  }
  return all
}

function candidatesOf(slice: KubeObject, portName: string, namespace: string): Candidate[] {
  const port = listAt(slice, 'ports').find((each) => textAt(each, 'name') === portName)
  const number = port && numberAt(port, 'port')
  const protocol = port ? textAt(port, 'protocol') : ''
  if (number === undefined || (protocol !== '' && protocol !== 'TCP')) return []
  const ready = listAt(slice, 'endpoints').flatMap((endpoint) =>
    candidateOf(endpoint, number, namespace),
  )
  const from = ready.length > 0 ? randomInt(ready.length) : 0
  return [...ready.slice(from), ...ready.slice(0, from)]
}

function candidateOf(endpoint: Fields, port: number, namespace: string): Candidate[] {
  const [ip] = textsAt(endpoint, 'addresses')
  const target = fieldsAt(endpoint, 'targetRef')
  const isReady = fieldsAt(endpoint, 'conditions')['ready'] !== false
  const isPod = textAt(target, 'kind') === 'Pod' && textAt(target, 'namespace') === namespace
  const podName = textAt(target, 'name')
  return isReady && isPod && ip !== undefined && podName !== '' ? [{ ip, port, podName }] : []
}

function trustOf(service: KubeObject, { name, namespace }: ProxyTarget): BackendTrust | undefined {
  const annotations = service.metadata.annotations ?? {}
  const caPem = annotations[trustAnnotations.ca]
  if (caPem === undefined) return undefined
  // Without one TLS would go by the CAs of this machine, which nobody meant.
  if (!caPem.includes('-----BEGIN CERTIFICATE-----'))
    throw unavailable(
      `service ${goQuote(name)} has no CA in its annotation ${trustAnnotations.ca}: it is a certificate in PEM`,
    )
  return {
    caPem,
    serverName: annotations[trustAnnotations.serverName] || `${name}.${namespace}.svc`,
  }
}
