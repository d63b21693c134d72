import { randomInt } from 'node:crypto'
import {
  ApiError,
  badRequest,
  type ClusterView,
  goQuote,
  isWorkloadPlace,
  type KubeObject,
  notFound,
  type ProxyTarget,
  proxyId,
  wellKnownKinds,
} from '../../core/index.ts'
import { type AddressTest, isDialable, isPlainLoopback } from '../../http/index.ts'
import { type Fields, fieldsAt, listAt, numberAt, textAt, textsAt } from './fields.ts'
import type { TargetSource } from './target-cache.ts'

/** A port as a number from 1 to 65535; `undefined` for everything else. */
function portNumber(text: string): number | undefined {
  const number = Number(text)
  return /^\d{1,5}$/.test(text) && number > 0 && number < 65_536 ? number : undefined
}

/** One place to which a request is forwarded; its address is the one that was checked, never a name. */
export interface ProxyBackend {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  /** Verifies the certificate of an https backend; without one it is not verified, as in Kubernetes. */
  readonly trust?: BackendTrust
}

/** How the certificate of a backend is verified. */
interface BackendTrust {
  readonly caPem: string
  /** The name that it must have. */
  readonly serverName: string
}

/** `host:port` as a URL has it. */
export const authorityOf = ({ host, port }: Pick<ProxyBackend, 'host' | 'port'>): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

const defaultPort = { '': 80, http: 80, https: 443 } as const

/** The addresses that a Pod has been given. */
function podAddresses(pod: KubeObject): string[] {
  const status = fieldsAt(pod, 'status')
  const first = textAt(status, 'podIP')
  const all = listAt(status, 'podIPs').map((each) => textAt(each, 'ip'))
  return [...new Set([first, ...all])].filter((address) => address !== '')
}

/** Where targets are looked up, and to which addresses the operator has limited them. */
export interface TargetRules {
  readonly targets: TargetSource
  readonly isAllowedTarget: AddressTest
}

/**
 * Whether a Pod may be dialed there: at an address of the network, or on loopback where `workload run` has put it.
 * Only loopback has that exception: a machine must not be able to name the address of a metadata service either.
 */
function mayDialPod(
  pod: KubeObject,
  place: { readonly ip: string; readonly port: number },
  isAllowedTarget: AddressTest,
): boolean {
  const { ip } = place
  if (!podAddresses(pod).includes(ip) || !isAllowedTarget(ip)) return false
  return isDialable(ip) || (isPlainLoopback(ip) && isWorkloadPlace(pod, place))
}

/** Where a Pod is reached. */
export async function podBackend(
  { targets, isAllowedTarget }: TargetRules,
  target: ProxyTarget,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const { namespace, name, scheme } = target
  const pod = await targets.get(wellKnownKinds.pod, { namespace, name }, signal)
  if (!pod) throw notFound(wellKnownKinds.pod, name)
  const port = portOf(pod, target)
  const [ip = ''] = podAddresses(pod)
  if (!mayDialPod(pod, { ip, port }, isAllowedTarget)) throw badRequest('address not allowed')
  return { scheme: scheme || 'http', host: ip, port }
}

function portOf(pod: KubeObject, { port, scheme, name }: ProxyTarget): number {
  const ports = listAt(fieldsAt(pod, 'spec'), 'containers').flatMap((each) => listAt(each, 'ports'))
  if (port === '') return numberAt(ports[0] ?? {}, 'containerPort') ?? defaultPort[scheme]
  const named = ports.find((each) => textAt(each, 'name') === port)
  const number = portNumber(port) ?? (named && numberAt(named, 'containerPort'))
  if (number === undefined) throw badRequest(`pod ${name} has no port ${JSON.stringify(port)}`)
  return number
}

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
  { targets, isAllowedTarget }: TargetRules,
  target: ProxyTarget,
  service: KubeObject,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const { namespace, name } = target
  const scheme = target.scheme || 'http'
  const portName = portNameOf(service, target)
  const slices = await targets.slices(namespace, name, signal)
  for (const slice of inRandomOrder(service, slices)) {
    for (const { ip, port, podName } of candidatesOf(slice, portName, namespace)) {
      const pod = await targets.get(wellKnownKinds.pod, { namespace, name: podName }, signal)
      if (!pod || !mayDialPod(pod, { ip, port }, isAllowedTarget)) continue
      const trust = scheme === 'https' ? trustOf(service, target) : undefined
      return { scheme, host: ip, port, ...(trust && { trust }) }
    }
  }
  throw unavailable(`no endpoints available for service ${goQuote(proxyId(target))}`)
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

const defaultKubeletPort = 10_250

/** Only addresses: a name could lead elsewhere by the time it is dialled. */
const preferredTypes = ['InternalIP', 'ExternalIP']

/** Where a node is reached: its kubelet, by TLS under the cluster's CA, unless another port is named. */
export async function nodeBackend(
  parts: Pick<TargetRules, 'isAllowedTarget'> & {
    readonly view: ClusterView
    readonly clusterCaPem: () => string
  },
  { name, port, scheme }: ProxyTarget,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const node = await parts.view.get(wellKnownKinds.node, { name }, signal)
  if (!node) throw notFound(wellKnownKinds.node, name)
  const host = addressOf(node)
  if (host === undefined || !isDialable(host) || !parts.isAllowedTarget(host))
    throw badRequest('address not allowed')
  const kubeletPort = kubeletPortOf(node)
  const number = port === '' ? kubeletPort : portNumber(port)
  if (number === undefined) throw badRequest(`invalid port ${JSON.stringify(port)} of a node`)
  if (number !== kubeletPort) return { scheme: scheme || 'http', host, port: number }
  const trust = { caPem: parts.clusterCaPem(), serverName: name }
  return { scheme: 'https', host, port: number, trust }
}

function addressOf(node: KubeObject): string | undefined {
  const addresses = listAt(fieldsAt(node, 'status'), 'addresses')
  for (const type of preferredTypes) {
    const found = addresses.find((each) => textAt(each, 'type') === type)
    if (found) return textAt(found, 'address')
  }
  return undefined
}

function kubeletPortOf(node: KubeObject): number {
  const endpoints = fieldsAt(fieldsAt(node, 'status'), 'daemonEndpoints')
  return numberAt(fieldsAt(endpoints, 'kubeletEndpoint'), 'Port') || defaultKubeletPort
}
