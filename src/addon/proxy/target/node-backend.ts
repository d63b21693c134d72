import {
  badRequest,
  type ClusterView,
  type KubeObject,
  notFound,
  wellKnownKinds,
} from '../../../core/index.ts'
import { isDialable } from './address-guard.ts'
import type { ProxyBackend } from './backend.ts'
import { fieldsAt, listAt, numberAt, textAt } from './fields.ts'
import { type ProxyTarget, portNumber } from './proxy-target.ts'

const defaultKubeletPort = 10_250

/** Only addresses: a name could lead elsewhere by the time it is dialled. */
const preferredTypes = ['InternalIP', 'ExternalIP']

/** Where a node is reached: its kubelet, by TLS under the cluster's CA, unless another port is named. */
export async function nodeBackend(
  parts: { readonly view: ClusterView; readonly clusterCaPem: () => string },
  { name, port, scheme }: ProxyTarget,
  signal: AbortSignal,
): Promise<ProxyBackend> {
  const node = await parts.view.get(wellKnownKinds.node, { name }, signal)
  if (!node) throw notFound(wellKnownKinds.node, name)
  const host = addressOf(node)
  if (host === undefined || !isDialable(host)) throw badRequest('address not allowed')
  const kubeletPort = kubeletPortOf(node)
  const number = port === '' ? kubeletPort : portNumber(port)
  if (number === undefined) throw badRequest(`invalid port ${JSON.stringify(port)} of a node`)
  if (number !== kubeletPort) return { scheme, host, port: number }
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
