import type { KubeObject, OwnerReference } from '../../../core/index.ts'
import { type Fields, fieldsAt, recordsAt, textAt, textsAt } from '../../kinds/fields.ts'
import { jsonEqual } from '../../patch/errors.ts'
import type { AddressType } from './pod-and-service.ts'

/** Labels that tell to which Service a slice belongs and who looks after it. */
export const sliceLabels = {
  serviceName: 'kubernetes.io/service-name',
  managedBy: 'endpointslice.kubernetes.io/managed-by',
  headless: 'service.kubernetes.io/headless',
} as const

/** One address behind a Service, as a slice writes it. */
export interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions: {
    readonly ready: boolean
    readonly serving?: boolean
    readonly terminating?: boolean
  }
  readonly hostname?: string
  readonly nodeName?: string
  readonly zone?: string
  readonly targetRef?: unknown
}

/** A port behind a Service, as a slice writes it. */
export interface EndpointPort {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly appProtocol?: string
}

/** Endpoints that share their ports and address family, and so can share slices. */
export interface EndpointGroup {
  readonly addressType: AddressType
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
}

/** What the slices of one Service have in common. */
export interface SliceTemplate {
  readonly namespace: string
  readonly generateName: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly owner: OwnerReference
}

/** Groups slices and endpoints: the same key for the same ports in whatever order. */
export function groupKey(addressType: string, ports: readonly object[]): string {
  const shown = ports.map((port) => {
    const fields: Fields = { ...port }
    const texts = ['name', 'protocol', 'appProtocol'].map((field) => textAt(fields, field))
    return JSON.stringify([...texts, fields['port']])
  })
  return `${addressType} ${shown.toSorted().join(' ')}`
}

/** The group that an existing slice belongs to. */
const groupKeyOf = (slice: KubeObject): string =>
  groupKey(textAt(slice, 'addressType'), recordsAt(slice, 'ports'))

/** The addresses of an existing slice. */
export const endpointsOf = (slice: KubeObject): Fields[] => recordsAt(slice, 'endpoints')

/** Builds a slice, new or in the place of an existing one. */
function buildSlice(
  template: SliceTemplate,
  group: EndpointGroup,
  existing?: KubeObject,
): KubeObject {
  const { namespace, generateName, labels, annotations, owner } = template
  const metadata = existing?.metadata ?? { name: '', generateName, namespace }
  const { annotations: _, ...kept } = metadata
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...kept,
      labels: { ...labels },
      ...(Object.keys(annotations).length > 0 && { annotations: { ...annotations } }),
      ownerReferences: [owner],
    },
    addressType: group.addressType,
    endpoints: [...group.endpoints],
    ports: [...group.ports],
  }
}

/** The writes that lead from the slices that exist to those that are wanted. */
export interface SliceChanges {
  readonly create: KubeObject[]
  readonly update: KubeObject[]
  readonly delete: KubeObject[]
}

/** A slice on its way to its new content. */
interface Draft {
  readonly existing: KubeObject
  readonly endpoints: Endpoint[]
  changed: boolean
}

const idOf = (endpoint: object): string => {
  const fields: Record<string, unknown> = { ...endpoint }
  const target = fieldsAt(fields, 'targetRef')
  const pod = `${textAt(target, 'namespace')}/${textAt(target, 'name')}`
  return `${pod} ${textsAt(fields, 'addresses').join(' ')}`
}

/** Keeps what is still wanted where it is; takes it from `wanted`. */
function keepWanted(
  slice: KubeObject,
  wanted: Map<string, Endpoint>,
  template: SliceTemplate,
): Draft {
  const before = endpointsOf(slice)
  const endpoints = before.flatMap((endpoint) => {
    const id = idOf(endpoint)
    const next = wanted.get(id)
    wanted.delete(id)
    return next === undefined ? [] : [next]
  })
  const { labels = {}, annotations = {} } = slice.metadata
  const isSame =
    jsonEqual(before, endpoints) &&
    jsonEqual(labels, template.labels) &&
    jsonEqual(annotations, template.annotations)
  return { existing: slice, endpoints, changed: !isSame }
}

const fullestFirst = (drafts: readonly Draft[]): Draft[] =>
  drafts.toSorted((a, b) => b.endpoints.length - a.endpoints.length)

const byAddress = (a: Endpoint, b: Endpoint): number => {
  const [first = '', second = ''] = [a.addresses[0], b.addresses[0]]
  return first < second ? -1 : first > second ? 1 : 0
}

/** Finds places for new endpoints; returns the contents of the slices to create. */
function place(added: readonly Endpoint[], drafts: readonly Draft[], max: number): Endpoint[][] {
  const rest = added.toSorted(byAddress)
  // Slices that are written anyway are filled first.
  for (const draft of fullestFirst(drafts.filter(({ changed }) => changed))) {
    draft.endpoints.push(...rest.splice(0, max - draft.endpoints.length))
  }
  const created: Endpoint[][] = []
  while (rest.length >= max) created.push(rest.splice(0, max))
  if (rest.length === 0) return created
  const fitting = fullestFirst(drafts).find(
    ({ endpoints }) => endpoints.length + rest.length <= max,
  )
  if (fitting === undefined) return [...created, rest]
  fitting.endpoints.push(...rest)
  fitting.changed = true
  return created
}

/** A group without endpoints keeps one empty slice. */
function planEmptyGroup(
  group: EndpointGroup,
  slices: readonly KubeObject[],
  template: SliceTemplate,
): SliceChanges {
  const [first, ...rest] = slices
  if (first === undefined) return { create: [buildSlice(template, group)], update: [], delete: [] }
  const { changed } = keepWanted(first, new Map(), template)
  const update = changed ? [buildSlice(template, group, first)] : []
  return { create: [], update, delete: rest }
}

function planGroup(
  group: EndpointGroup,
  slices: readonly KubeObject[],
  template: SliceTemplate,
  max: number,
): SliceChanges {
  if (group.endpoints.length === 0) return planEmptyGroup(group, slices, template)
  const wanted = new Map(group.endpoints.map((endpoint) => [idOf(endpoint), endpoint]))
  const drafts = slices.map((slice) => keepWanted(slice, wanted, template))
  const created = place([...wanted.values()], drafts, max)
  return {
    create: created.map((endpoints) => buildSlice(template, { ...group, endpoints })),
    update: drafts
      .filter(({ changed, endpoints }) => changed && endpoints.length > 0)
      .map(({ existing, endpoints }) => buildSlice(template, { ...group, endpoints }, existing)),
    delete: drafts.filter(({ endpoints }) => endpoints.length === 0).map((draft) => draft.existing),
  }
}

const isOwned = (slice: KubeObject, { owner }: SliceTemplate): boolean =>
  (slice.metadata.ownerReferences ?? []).some(
    ({ uid, kind }) => uid === owner.uid && kind === owner.kind,
  )

/** Writes a slice that is to be created over one that is to be deleted. */
function recycle(changes: SliceChanges, template: SliceTemplate): SliceChanges {
  const remaining = [...changes.delete]
  const update = [...changes.update]
  const create = changes.create.filter((slice) => {
    const at = remaining.findIndex(
      (old) => old['addressType'] === slice['addressType'] && isOwned(old, template),
    )
    const [old] = at < 0 ? [] : remaining.splice(at, 1)
    if (old === undefined) return true
    const { resourceVersion, uid, name, namespace } = old.metadata
    update.push({
      ...slice,
      metadata: {
        ...slice.metadata,
        name,
        ...(namespace !== undefined && { namespace }),
        ...(resourceVersion !== undefined && { resourceVersion }),
        ...(uid !== undefined && { uid }),
      },
    })
    return false
  })
  return { create, update, delete: remaining }
}

/** Plans few writes: endpoints stay in the slice they are in, and slices that exist are used again. */
export function planSlices(
  groups: readonly EndpointGroup[],
  existing: readonly KubeObject[],
  template: SliceTemplate,
  max: number,
): SliceChanges {
  const slices = existing.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const keys = new Set(groups.map(({ addressType, ports }) => groupKey(addressType, ports)))
  const owned = slices.filter((slice) => isOwned(slice, template))
  const unwanted = slices.filter((slice) => !owned.includes(slice) || !keys.has(groupKeyOf(slice)))
  const planned = groups.map((group) => {
    const key = groupKey(group.addressType, group.ports)
    const own = owned.filter((slice) => groupKeyOf(slice) === key)
    return planGroup(group, own, template, max)
  })
  return recycle(
    {
      create: planned.flatMap(({ create }) => create),
      update: planned.flatMap(({ update }) => update),
      delete: [...unwanted, ...planned.flatMap((changes) => changes.delete)],
    },
    template,
  )
}
