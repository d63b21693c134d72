import { type Change, createInformer, type Informer } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  excerpt,
  isRecord,
  type KubeObject,
  type Logger,
  machineOf,
  wellKnownKinds,
} from '../../core/index.ts'
import { hostKey, type IpRange, parseIp, parseIpRange, RangeTable } from '../addresses.ts'
import { SparseLog } from '../sampled-log.ts'

/** What routes are read from. */
export interface NodeRoutesParts {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
}

/** What an object says about addresses: this node or Service has them. */
interface Evidence {
  readonly owner: string
  /** Keys of addresses and names. */
  readonly hosts: readonly string[]
  readonly ranges: readonly IpRange[]
}

type WatchedKind = 'node' | 'pod' | 'service'

/** Addresses that mean something else on each machine, so no node has them for others. */
const localRanges = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/127',
  'fe80::/10',
  'ff00::/8',
].flatMap((text) => parseIpRange(text) ?? [])

/**
 * Which node has an address, by the cluster's own objects: Pod CIDRs and addresses of Nodes, IPs of Pods that are bound to
 * them, and IPs of Services, which no node has. A node writes some of these itself, so an address belongs to a node only
 * if everything that is said about it names that node.
 */
export class NodeRoutes {
  readonly #parts: NodeRoutesParts
  readonly #sparseLog: SparseLog
  readonly #owners = new Map<string, Map<string, number>>()
  readonly #ranges = new RangeTable<string>()
  #nodes: Informer<Evidence> | undefined
  #isSynced = false
  #stop: AbortController | undefined

  constructor(parts: NodeRoutesParts) {
    this.#parts = parts
    this.#sparseLog = new SparseLog(parts.log, parts.clock)
  }

  /** Starts the informers; until every kind was listed once, no address belongs to a node. */
  start(): void {
    const stop = new AbortController()
    this.#stop = stop
    const { signal } = stop
    this.#nodes = this.#watch('node', signal)
    const informers = [this.#nodes, this.#watch('pod', signal), this.#watch('service', signal)]
    Promise.all(informers.map(({ synced }) => synced)).then(
      () => {
        this.#isSynced = true
      },
      () => {}, // stopped before the first list
    )
  }

  stop(): void {
    this.#stop?.abort()
  }

  /** The node that an address or host name belongs to; `undefined` when that is not proven. */
  nodeOf(host: string): string | undefined {
    if (!this.#isSynced || isLocal(host)) return undefined
    const owners = this.#ownersOf(host)
    const [only] = owners
    if (owners.size === 1 && only !== undefined && this.#isNode(only)) return only
    if (owners.size > 1) {
      const fields = { address: excerpt(host), owners: [...owners].slice(0, 5).map(excerpt) }
      this.#sparseLog.warn(host, fields, 'address has several owners, no node gets its traffic')
    }
    return undefined
  }

  /** Whether a whole range belongs to a node: it lies in a Pod CIDR of that node and meets none of another. */
  hasRange(node: string, text: string): boolean {
    const range = parseIpRange(text)
    if (!range || !this.#isSynced) return false
    const owners = new Set([...this.#ranges.around(range, range.bits)].flatMap((each) => [...each]))
    return owners.size === 1 && owners.has(node) && !this.#ranges.hasInside(range, node)
  }

  #ownersOf(host: string): Set<string> {
    const ip = parseIp(host)
    const owners = new Set(this.#owners.get(hostKey(host))?.keys())
    // The name of a Node is its own; that others list it as theirs changes nothing.
    if (!ip) return this.#isNode(hostKey(host)) ? new Set([hostKey(host)]) : owners
    for (const set of this.#ranges.around(ip, ip.width)) for (const owner of set) owners.add(owner)
    return owners
  }

  #isNode(name: string): boolean {
    return this.#nodes?.get({ name }) !== undefined
  }

  #watch(name: WatchedKind, signal: AbortSignal): Informer<Evidence> {
    const kind = wellKnownKinds[name]
    const informer = createInformer({ ...this.#parts, kind, project: evidenceOf[name], signal })
    informer.onChange((change) => this.#replace(change))
    return informer
  }

  #replace({ before, after }: Change<Evidence>): void {
    if (before) {
      for (const host of before.hosts) this.#count(host, before.owner, -1)
      for (const range of before.ranges) this.#ranges.delete(range, before.owner)
    }
    if (after) {
      for (const host of after.hosts) this.#count(host, after.owner, 1)
      for (const range of after.ranges) this.#ranges.add(range, after.owner)
    }
  }

  #count(host: string, owner: string, change: 1 | -1): void {
    const owners = this.#owners.get(host) ?? new Map<string, number>()
    const count = (owners.get(owner) ?? 0) + change
    if (count > 0) owners.set(owner, count)
    else owners.delete(owner)
    if (owners.size > 0) this.#owners.set(host, owners)
    else this.#owners.delete(host)
  }
}

type Fields = Readonly<Record<string, unknown>>
const fieldsAt = (object: Fields, name: string): Fields => {
  const value = object[name]
  return isRecord(value) ? value : {}
}
const listAt = (object: Fields, name: string): unknown[] => {
  const value = object[name]
  return Array.isArray(value) ? value : []
}
const textAt = (object: unknown, name: string): string => {
  const value = isRecord(object) ? object[name] : undefined
  return typeof value === 'string' ? value : ''
}

/** Keys of what can belong to a node: names, and addresses that mean the same everywhere. */
const keysOf = (hosts: readonly string[]): string[] => [
  ...new Set(hosts.filter((host) => host !== '' && !isLocal(host)).map(hostKey)),
]

function isLocal(host: string): boolean {
  const ip = parseIp(host)
  return (
    ip !== undefined &&
    localRanges.some((range) => range.width === ip.width && range.covers(ip.value))
  )
}

const evidenceOf: Readonly<Record<WatchedKind, (object: KubeObject) => Evidence | undefined>> = {
  node: (object) => ({
    owner: object.metadata.name,
    hosts: keysOf(
      listAt(fieldsAt(object, 'status'), 'addresses').map((at) => textAt(at, 'address')),
    ),
    ranges: [...new Set(podCidrsOf(object))].flatMap((text) => parseIpRange(text) ?? []),
  }),
  pod: (object) => {
    const owner = textAt(object['spec'], 'nodeName')
    const status = fieldsAt(object, 'status')
    const isOver = ['Succeeded', 'Failed'].includes(textAt(status, 'phase'))
    // What `workload run` registers belongs to a machine, which is not a node even if it is named like one.
    if (owner === '' || isOver || machineOf(object) !== undefined) return undefined
    const ips = listAt(status, 'podIPs').map((each) => textAt(each, 'ip'))
    return { owner, hosts: keysOf([textAt(status, 'podIP'), ...ips]), ranges: [] }
  },
  service: (object) => {
    const spec = fieldsAt(object, 'spec')
    const ingress = listAt(fieldsAt(fieldsAt(object, 'status'), 'loadBalancer'), 'ingress')
    const ips = [...listAt(spec, 'clusterIPs'), ...listAt(spec, 'externalIPs')].map(String)
    return {
      owner: `service ${object.metadata.namespace}/${object.metadata.name}`,
      hosts: keysOf(
        [textAt(spec, 'clusterIP'), ...ips, ...ingress.map((each) => textAt(each, 'ip'))].filter(
          (ip) => parseIp(ip),
        ),
      ),
      ranges: [],
    }
  },
}

const podCidrsOf = (node: KubeObject): string[] => {
  const spec = fieldsAt(node, 'spec')
  return [textAt(spec, 'podCIDR'), ...listAt(spec, 'podCIDRs').map(String)]
}
