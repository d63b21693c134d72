import { BlockList, isIP, isIPv6 } from 'node:net'
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

/** Traffic for an address that two Nodes list reaches neither: a node must not do that to another. */
async function refuseForeignAddresses(
  who: string,
  attempt: WriteAttempt,
  view: Pick<ClusterView, 'list'>,
  signal: AbortSignal,
): Promise<void> {
  const before = new Set(addressesOf(attempt.oldObject))
  const added = addressesOf(attempt.object).filter((address) => !before.has(address))
  if (added.length === 0) return
  const isForeign = (owner: string): boolean => owner !== '' && owner !== attempt.name
  const requireFree = (owner: string, has: (address: string) => boolean): void => {
    const taken = added.find(has)
    if (taken === undefined) return
    throw refusal(
      attempt,
      `${who} is not allowed to list ${goQuote(taken)}, which belongs to node ${goQuote(owner)}`,
    )
  }
  const nodes = await view.list(wellKnownKinds.node, {}, signal)
  for (const other of nodes.items) {
    const { name } = other.metadata
    if (isForeign(name)) requireFree(name, (address) => hasAddress(other, address))
  }
  const pods = await view.list(wellKnownKinds.pod, {}, signal)
  for (const pod of pods.items) {
    const owner = specField(pod, 'nodeName')
    // What `workload run` registers has the address of its machine, which may have joined as a node as well.
    if (typeof owner !== 'string' || machineOf(pod) !== undefined || isOver(pod)) continue
    if (!isForeign(owner)) continue
    const ips = addressList(podIpsOf(pod))
    requireFree(owner, (address) => contains(ips, address))
  }
}

const statusField = (object: KubeObject, field: string): unknown =>
  isRecord(object['status']) ? object['status'][field] : undefined

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

/** The same for every spelling of a host name. */
const nameKey = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/** Whether a Node has an address or a name. */
function hasAddress(node: KubeObject, address: string): boolean {
  if (isIP(address) === 0) {
    const name = nameKey(address)
    const names = [node.metadata.name, ...addressesOf(node)].map(nameKey)
    return name !== 'localhost' && names.includes(name)
  }
  const own = addressList(addressesOf(node))
  const ranges = specField(node, 'podCIDRs')
  for (const range of Array.isArray(ranges) ? ranges : []) {
    const [network = '', bits = ''] = String(range).split('/')
    if (isIP(network) !== 0) own.addSubnet(network, Number(bits), familyOf(network))
  }
  return contains(own, address)
}

function addressList(addresses: readonly string[]): BlockList {
  const list = new BlockList()
  for (const each of addresses) if (isIP(each) !== 0) list.addAddress(each, familyOf(each))
  return list
}

/** Whether the list has an address, in any spelling; loopback is on every machine. */
const contains = (list: BlockList, address: string): boolean =>
  isIP(address) !== 0 &&
  list.check(address, familyOf(address)) &&
  !loopback.check(address, familyOf(address))

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
