import type { KubeObject } from '../../../core/index.ts'
import { recordsAt } from '../../kinds/fields.ts'
import { jsonEqual } from '../../patch/errors.ts'
import { type EndpointPort, sliceLabels } from './plan-slices.ts'
import {
  hostnameIn,
  ipsOfType,
  type PodInfo,
  podReference,
  portOnPod,
  portShape,
  type ServiceInfo,
} from './pod-and-service.ts'

// An Endpoints object shows no more than this; slices show them all.
const maxAddresses = 1000

interface EndpointAddress {
  readonly ip: string
  readonly hostname?: string
  readonly nodeName?: string
  readonly targetRef: ReturnType<typeof podReference>
}

/** Addresses that all serve the same ports. */
export interface EndpointSubset {
  readonly addresses?: readonly EndpointAddress[]
  readonly notReadyAddresses?: readonly EndpointAddress[]
  readonly ports?: readonly EndpointPort[]
}

interface Member {
  readonly address: EndpointAddress
  readonly ready: boolean
}

function addressOf(service: ServiceInfo, pod: PodInfo): EndpointAddress | undefined {
  const [type = 'IPv4'] = service.addressTypes
  const [ip] = ipsOfType(pod, type)
  if (ip === undefined) return undefined
  const hostname = hostnameIn(service, pod)
  return {
    ip,
    ...(hostname !== undefined && { hostname }),
    ...(pod.nodeName !== '' && { nodeName: pod.nodeName }),
    targetRef: podReference(pod),
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const byAddress = (a: Member, b: Member): number =>
  compare(a.address.ip, b.address.ip) || compare(a.address.targetRef.uid, b.address.targetRef.uid)

/** Members whose Pods serve the same ports. */
interface MemberGroup {
  readonly sample: PodInfo
  readonly members: Member[]
}

function memberGroups(service: ServiceInfo, pods: Iterable<PodInfo>): MemberGroup[] {
  const groups = new Map<string, MemberGroup>()
  for (const pod of pods) {
    if (pod.finished || (pod.terminating && !service.publishNotReady)) continue
    const address = addressOf(service, pod)
    if (address === undefined) continue
    const shape = portShape(pod)
    const group = groups.get(shape) ?? { sample: pod, members: [] }
    groups.set(shape, group)
    group.members.push({ address, ready: service.publishNotReady || pod.ready })
  }
  return [...groups.values()]
}

/** The groups of members behind each port; the key without a port is for Services that have none. */
function groupsByPort(
  service: ServiceInfo,
  groups: readonly MemberGroup[],
): Map<string, readonly MemberGroup[]> {
  const found = new Map<string, MemberGroup[]>()
  if (service.ports.length === 0 && service.headless && groups.length > 0)
    return new Map([['', groups]])
  for (const servicePort of service.ports) {
    const { name, protocol, appProtocol } = servicePort
    for (const group of groups) {
      const port = portOnPod(servicePort, group.sample)
      if (port === undefined) continue
      const key = JSON.stringify({ ...(name !== '' && { name }), port, protocol, appProtocol })
      const known = found.get(key)
      if (known === undefined) found.set(key, [group])
      else known.push(group)
    }
  }
  return found
}

function subsetOf(members: readonly Member[], ports: readonly string[]): EndpointSubset {
  const addresses = members.filter(({ ready }) => ready).map(({ address }) => address)
  const notReady = members.filter(({ ready }) => !ready).map(({ address }) => address)
  const parsed = ports.filter((port) => port !== '').map((port): EndpointPort => JSON.parse(port))
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReady.length > 0 && { notReadyAddresses: notReady }),
    ...(parsed.length > 0 && { ports: parsed }),
  }
}

/** The subsets of a Service's Endpoints: ports that are served by the very same Pods share one. */
export function endpointSubsets(service: ServiceInfo, pods: Iterable<PodInfo>): EndpointSubset[] {
  const groups = memberGroups(service, pods)
  const places = new Map(groups.map((group, index) => [group, index]))
  const subsets = new Map<string, { groups: readonly MemberGroup[]; ports: string[] }>()
  for (const [port, behind] of groupsByPort(service, groups)) {
    const key = behind.map((group) => places.get(group)).join(' ')
    const subset = subsets.get(key) ?? { groups: behind, ports: [] }
    subsets.set(key, subset)
    subset.ports.push(port)
  }
  return [...subsets.values()]
    .map((subset) => {
      const members = subset.groups.flatMap((group) => group.members).toSorted(byAddress)
      const made = subsetOf(members, subset.ports.toSorted())
      return { made, text: JSON.stringify(made) }
    })
    .toSorted((a, b) => compare(a.text, b.text))
    .map(({ made }) => made)
}

const countOf = (subsets: readonly EndpointSubset[], list: 'addresses' | 'notReadyAddresses') =>
  subsets.reduce((sum, subset) => sum + (subset[list]?.length ?? 0), 0)

function cut(
  subsets: readonly EndpointSubset[],
  list: 'addresses' | 'notReadyAddresses',
  max: number,
): EndpointSubset[] {
  const total = countOf(subsets, list)
  if (total <= max) return [...subsets]
  let left = max
  return subsets.map((subset) => {
    const addresses = subset[list] ?? []
    const share = Math.min(left, Math.ceil((addresses.length / total) * max))
    left -= share
    const { [list]: _, ...rest } = subset
    return share === 0 ? rest : { ...rest, [list]: addresses.slice(0, share) }
  })
}

/** Leaves out what is too much, those that are not ready first, and evenly from all subsets. */
export function truncated(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  const ready = cut(subsets, 'addresses', maxAddresses)
  const both = cut(ready, 'notReadyAddresses', maxAddresses - countOf(ready, 'addresses'))
  return both.filter(({ addresses, notReadyAddresses }) => addresses ?? notReadyAddresses)
}

/** Whether a Service has more addresses than its Endpoints can show. */
export const isOverCapacity = (subsets: readonly EndpointSubset[]): boolean =>
  countOf(subsets, 'addresses') + countOf(subsets, 'notReadyAddresses') > maxAddresses

const managedByLabel = 'endpoints.kubernetes.io/managed-by'
const managedBy = 'endpoint-controller'
const overCapacity = 'endpoints.kubernetes.io/over-capacity'

/** Whether an Endpoints object was made from a Service's selector. */
export const isManaged = (endpoints: KubeObject): boolean =>
  endpoints.metadata.labels?.[managedByLabel] === managedBy

function labelsOf(service: ServiceInfo): Record<string, string> {
  const { [sliceLabels.headless]: _, ...own } = service.labels
  return {
    ...own,
    ...(service.headless && { [sliceLabels.headless]: '' }),
    [managedByLabel]: managedBy,
  }
}

/** The Endpoints that a Service should have; the very same when that is what it has. */
export function endpointsObject(
  service: ServiceInfo,
  pods: Iterable<PodInfo>,
  existing: KubeObject | undefined,
): KubeObject {
  const all = endpointSubsets(service, pods)
  const subsets = truncated(all)
  const labels = labelsOf(service)
  const metadata = existing?.metadata ?? { name: service.name, namespace: service.namespace }
  const { [overCapacity]: marked, ...others } = metadata.annotations ?? {}
  const over = isOverCapacity(all)
  if (
    existing !== undefined &&
    jsonEqual(recordsAt(existing, 'subsets'), subsets) &&
    jsonEqual(metadata.labels ?? {}, labels) &&
    (marked === 'truncated') === over
  ) {
    return existing
  }
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      ...metadata,
      labels,
      annotations: over ? { ...others, [overCapacity]: 'truncated' } : others,
    },
    subsets,
  }
}
