import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  type Admission,
  type ClusterView,
  forbidden,
  goQuote,
  isRecord,
  type KubeObject,
  machineOf,
  type WriteAttempt,
  wellKnownKinds,
} from '../core/index.ts'
import {
  isCertificateRequest,
  requestedSubject,
  type SubjectReader,
  signerOf,
  signers,
} from './certificate-admission.ts'
import { forbiddenNodeLabels, nodeLeaseNamespace, nodeNameOf } from './node-authorizer.ts'

/**
 * Holds a node identity to its own Node, its own Lease and requests for its own certificates, and in its Node to
 * addresses that no other Node and no Pod on another node has, whatever rights it was given besides.
 */
export function nodeAdmission(
  readSubject: SubjectReader,
  view: Pick<ClusterView, 'list'>,
): Admission {
  return (attempt, signal) => {
    const node = nodeNameOf(attempt.user)
    if (node === undefined) return
    if (node === '') {
      throw refusal(attempt, `could not determine node from user ${goQuote(attempt.user.username)}`)
    }
    const { group, resource } = attempt.kind
    if (group === '' && resource === 'nodes') return admitNode(node, attempt, view, signal)
    if (group === 'coordination.k8s.io' && resource === 'leases') return admitLease(node, attempt)
    if (isCertificateRequest(attempt)) return admitRequest(node, attempt, readSubject)
    if (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return
    throw refusal(attempt, `node ${goQuote(node)} can only write its own Node, Lease and CSRs`)
  }
}

const refusal = (attempt: WriteAttempt, why: string) => forbidden(attempt.kind, attempt.name, why)

function specField(object: KubeObject | undefined, field: string): unknown {
  const spec = object?.['spec']
  return isRecord(spec) ? spec[field] : undefined
}

async function admitNode(
  node: string,
  attempt: WriteAttempt,
  view: Pick<ClusterView, 'list'>,
  signal: AbortSignal,
): Promise<void> {
  const { name, operation, object, oldObject } = attempt
  const who = `node ${goQuote(node)}`
  if (name !== node) {
    throw refusal(attempt, `${who} is not allowed to modify node ${goQuote(name)}`)
  }
  if (operation === 'create') {
    const labels = forbiddenNodeLabels(object?.metadata.labels, undefined)
    if (labels.length > 0) {
      throw refusal(
        attempt,
        `${who} is not allowed to set the following labels: ${labels.join(', ')}`,
      )
    }
  }
  if (operation === 'update') refuseNodeChanges(who, attempt, object, oldObject)
  if (operation === 'delete') return
  for (const field of ['podCIDR', 'podCIDRs'])
    if (!isDeepStrictEqual(specField(object, field) || [], specField(oldObject, field) || []))
      throw refusal(
        attempt,
        `${who} is not allowed to set ${field}, which decides where traffic goes`,
      )
  await refuseForeignAddresses(who, attempt, view, signal)
}

/** Addresses that a node may list. A kubelet lists fewer than ten. */
const maxNodeAddresses = 256

/** Comparisons after which other requests get a turn. */
const comparisonsPerTurn = 2_000

/**
 * Traffic for an address that two Nodes list reaches neither: a node must not do that to another. Each address of each
 * Node and Pod is brought into one spelling once, however many addresses are compared with it.
 */
async function refuseForeignAddresses(
  who: string,
  attempt: WriteAttempt,
  view: Pick<ClusterView, 'list'>,
  signal: AbortSignal,
): Promise<void> {
  const added = addedHosts(who, attempt)
  if (added.size === 0) return
  let comparisons = 0
  for (const [kind, hostsOf] of hostsByKind) {
    const { items } = await view.list(kind, {}, signal)
    for (const object of items) {
      const hosts = hostsOf(object)
      if (hosts === undefined || hosts.owner === attempt.name) continue
      const taken = firstTaken(added, hosts)
      if (taken !== undefined) {
        const owner = goQuote(hosts.owner)
        throw refusal(
          attempt,
          `${who} is not allowed to list ${goQuote(taken)}, which belongs to node ${owner}`,
        )
      }
      comparisons += hosts.keys.length + (hosts.ranges ? added.size : 0)
      if (comparisons < comparisonsPerTurn) continue
      comparisons = 0
      await nextTurn()
    }
  }
}

/** The addresses and names that are new in a Node, by their keys; loopback is on every machine. */
function addedHosts(who: string, attempt: WriteAttempt): ReadonlyMap<string, string> {
  const before = new Set(addressesOf(attempt.oldObject))
  const listed = addressesOf(attempt.object)
  if (listed.length > maxNodeAddresses && listed.length > before.size)
    throw refusal(attempt, `${who} is not allowed to list more than ${maxNodeAddresses} addresses`)
  const added = new Map(
    listed.flatMap((address) => (before.has(address) ? [] : [[hostKey(address), address]])),
  )
  for (const key of added.keys()) if (isEverywhere(key)) added.delete(key)
  return added
}

function statusField(object: KubeObject, field: string): unknown {
  const status = object['status']
  return isRecord(status) ? status[field] : undefined
}

const isOver = (pod: KubeObject): boolean =>
  ['Succeeded', 'Failed'].includes(String(statusField(pod, 'phase')))

function podIpsOf(pod: KubeObject): string[] {
  const listed = statusField(pod, 'podIPs')
  const all = (Array.isArray(listed) ? listed : []).map((each) => isRecord(each) && each['ip'])
  return [statusField(pod, 'podIP'), ...all].filter((ip) => typeof ip === 'string')
}

function addressesOf(node: KubeObject | undefined): string[] {
  const listed = node && statusField(node, 'addresses')
  return (Array.isArray(listed) ? listed : []).flatMap((each) =>
    isRecord(each) && typeof each['address'] === 'string' ? each['address'] : [],
  )
}

const familyOf = (ip: string): 'ipv4' | 'ipv6' => (isIPv6(ip) ? 'ipv6' : 'ipv4')
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** The same for every spelling of an address, mapped ones included, and of a host name. */
function hostKey(host: string): string {
  if (isIPv4(host)) return host
  if (!isIPv6(host)) return host.toLowerCase().replace(/\.$/, '')
  const [plain = ''] = host.split('%')
  const { address } = new SocketAddress({ address: plain, family: 'ipv6' })
  const mapped = address.replace(/^::ffff:/, '')
  return isIPv4(mapped) ? mapped : address
}

const isEverywhere = (key: string): boolean =>
  key === 'localhost' || (isIP(key) !== 0 && loopback.check(key, familyOf(key)))

/** What belongs to a node. */
interface Hosts {
  /** The name of the node. */
  readonly owner: string
  /** Keys of its names and addresses. */
  readonly keys: readonly string[]
  readonly ranges?: BlockList | undefined
}

function hostsOfNode(node: KubeObject): Hosts {
  const { name: owner } = node.metadata
  const keys = addressesOf(node).map(hostKey)
  const podCidrs = specField(node, 'podCIDRs')
  return {
    owner,
    // A name that looks like an address does not have that address.
    keys: isIP(owner) === 0 ? [hostKey(owner), ...keys] : keys,
    ranges: Array.isArray(podCidrs) && podCidrs.length > 0 ? rangesOf(podCidrs) : undefined,
  }
}

function hostsOfPod(pod: KubeObject): Hosts | undefined {
  const owner = specField(pod, 'nodeName')
  // What `workload run` registers has the address of its machine, which may have joined as a node as well.
  const isOnNode = typeof owner === 'string' && owner !== '' && machineOf(pod) === undefined
  return isOnNode && !isOver(pod) ? { owner, keys: podIpsOf(pod).map(hostKey) } : undefined
}

const hostsByKind = [
  [wellKnownKinds.node, hostsOfNode],
  [wellKnownKinds.pod, hostsOfPod],
] as const

function rangesOf(cidrs: readonly unknown[]): BlockList {
  const ranges = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', bits = ''] = String(cidr).split('/')
    if (isIP(network) !== 0) ranges.addSubnet(network, Number(bits), familyOf(network))
  }
  return ranges
}

/** The first added address that a node has, as it was written. */
function firstTaken(
  added: ReadonlyMap<string, string>,
  { keys, ranges }: Hosts,
): string | undefined {
  for (const key of keys) if (added.has(key)) return added.get(key)
  if (!ranges) return undefined
  for (const [key, address] of added)
    if (isIP(key) !== 0 && ranges.check(key, familyOf(key))) return address
  return undefined
}

function refuseNodeChanges(
  who: string,
  attempt: WriteAttempt,
  object: KubeObject | undefined,
  old: KubeObject | undefined,
): void {
  if (!sameList(specField(object, 'taints'), specField(old, 'taints'))) {
    throw refusal(attempt, `${who} is not allowed to modify taints`)
  }
  if (!sameList(object?.metadata.ownerReferences, old?.metadata.ownerReferences)) {
    throw refusal(attempt, `${who} is not allowed to modify ownerReferences`)
  }
  const labels = forbiddenNodeLabels(object?.metadata.labels, old?.metadata.labels)
  if (labels.length > 0) {
    throw refusal(attempt, `is not allowed to modify labels: ${labels.join(', ')}`)
  }
}

const sameList = (a: unknown, b: unknown): boolean => isDeepStrictEqual(a ?? [], b ?? [])

function admitLease(node: string, attempt: WriteAttempt): void {
  if (attempt.namespace !== nodeLeaseNamespace) {
    throw refusal(
      attempt,
      `can only access leases in the ${goQuote(nodeLeaseNamespace)} system namespace`,
    )
  }
  if (attempt.name !== node) {
    throw refusal(attempt, 'can only access node lease with the same name as the requesting node')
  }
}

const kubeletSigners: readonly string[] = [signers.kubeletClient, signers.kubeletServing]

async function admitRequest(
  node: string,
  attempt: WriteAttempt,
  readSubject: SubjectReader,
): Promise<void> {
  const { operation, object } = attempt
  if (operation !== 'create' || !object) {
    throw refusal(attempt, `node ${goQuote(node)} can only create CSRs`)
  }
  if (!kubeletSigners.includes(signerOf(object))) return
  const { commonName } = await parsed(attempt, object, readSubject)
  if (commonName !== `system:node:${node}`) {
    throw refusal(attempt, `can only create a node CSR with CN=system:node:${node}`)
  }
}

async function parsed(attempt: WriteAttempt, object: KubeObject, readSubject: SubjectReader) {
  try {
    return await requestedSubject(object, readSubject)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'not a certificate request'
    throw refusal(attempt, `unable to parse csr: ${why}`)
  }
}
