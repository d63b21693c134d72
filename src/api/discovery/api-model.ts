import type { Kind } from '../../core/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import type { Schema } from './openapi-types.ts'

/** A part of a resource with a URL of its own. */
export interface ApiSubresource {
  readonly name: string
  /** The kind of its body, which need not be that of the resource. */
  readonly kind: GroupVersionKind
  readonly verbs: readonly string[]
}

/** One resource as discovery and OpenAPI describe it. */
export interface ApiResource {
  readonly resource: string
  readonly singular: string
  readonly namespaced: boolean
  readonly kind: GroupVersionKind
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly isStored: boolean
  /** A deletion is answered with the object instead of a Status. */
  readonly returnsDeleted: boolean
  /** The fields of a kind that is not in the tables. */
  readonly schema?: Schema
  readonly subresources: readonly ApiSubresource[]
}

/** All resources of one group and version. */
export interface ApiGroupVersion {
  readonly group: string
  readonly version: string
  readonly resources: readonly ApiResource[]
}

/** A kind that is asked by POST and never stored. */
export interface ReviewKindEntry extends Kind {
  readonly singular: string
}

/** A subresource that is not in the table of kinds, such as `serviceaccounts/token`. */
export interface ExtraSubresource extends ApiSubresource {
  readonly group: string
  readonly version: string
  /** Plural name of the resource that it belongs to. */
  readonly resource: string
}

/** A resource that is not in the table of kinds: a feature answers for it. */
export interface ExtraResource extends Kind {
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly verbs: readonly string[]
  /** Its own fields beside `apiVersion`, `kind` and `metadata`. */
  readonly schema?: Schema
}

/** Everything that the documents describe. */
export interface ApiParts {
  readonly kinds: readonly KindDefinition[]
  readonly reviews?: readonly ReviewKindEntry[]
  readonly extras?: readonly ExtraSubresource[]
  readonly live?: readonly ExtraResource[]
}

const storedVerbs = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const

/** Namespaces are too much to delete all at once; Kubernetes has no such verb for them. */
const withoutDeleteCollection = new Set(['namespaces'])

/** Groups in the order in which Kubernetes lists them; others follow by name. */
const groupOrder = [
  '',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'rbac.authorization.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
]

const byName =
  <T>(nameOf: (item: T) => string) =>
  (a: T, b: T): number =>
    nameOf(a) < nameOf(b) ? -1 : 1

const gvkOf = ({ group, version, kind }: Kind): GroupVersionKind => ({ group, version, kind })

function storedResource(
  definition: KindDefinition,
  extras: readonly ExtraSubresource[],
): ApiResource {
  const { kind } = definition
  const own = definition.subresources.map(({ name, verbs }) => ({
    name,
    kind: gvkOf(kind),
    verbs: [...verbs].sort(byName((verb) => verb)),
  }))
  const added = extras.filter(
    (extra) =>
      extra.group === kind.group &&
      extra.version === kind.version &&
      extra.resource === kind.resource,
  )
  return {
    resource: kind.resource,
    singular: definition.singular,
    namespaced: kind.namespaced,
    kind: gvkOf(kind),
    verbs: withoutDeleteCollection.has(kind.resource)
      ? storedVerbs.filter((verb) => verb !== 'deletecollection')
      : storedVerbs,
    shortNames: definition.shortNames,
    categories: definition.categories,
    isStored: true,
    returnsDeleted: definition.returnsDeleted ?? false,
    subresources: [...own, ...added].sort(byName(({ name }) => name)),
  }
}

const reviewResource = (review: ReviewKindEntry): ApiResource => ({
  resource: review.resource,
  singular: review.singular,
  namespaced: review.namespaced,
  kind: gvkOf(review),
  verbs: ['create'],
  shortNames: [],
  categories: [],
  isStored: false,
  returnsDeleted: false,
  subresources: [],
})

const liveResource = (live: ExtraResource): ApiResource => ({
  resource: live.resource,
  singular: live.singular,
  namespaced: live.namespaced,
  kind: gvkOf(live),
  verbs: live.verbs,
  shortNames: live.shortNames ?? [],
  categories: [],
  isStored: false,
  returnsDeleted: false,
  ...(live.schema && { schema: live.schema }),
  subresources: [],
})

const rank = (group: string): string => {
  const known = groupOrder.indexOf(group)
  return known < 0 ? `~${group}` : String(known).padStart(2, '0')
}

/** Sorts everything that is served by group and version. */
export function apiModel({
  kinds,
  reviews = [],
  extras = [],
  live = [],
}: ApiParts): ApiGroupVersion[] {
  const resources = [
    ...kinds.map((definition) => storedResource(definition, extras)),
    ...reviews.map(reviewResource),
    ...live.map(liveResource),
  ].sort(byName(({ resource }) => resource))
  const found = new Map<string, ApiGroupVersion & { resources: ApiResource[] }>()
  for (const resource of resources) {
    const { group, version } = resource.kind
    const key = `${group}/${version}`
    const entry = found.get(key) ?? { group, version, resources: [] }
    entry.resources.push(resource)
    found.set(key, entry)
  }
  return [...found.values()].sort(byName(({ group, version }) => `${rank(group)}/${version}`))
}
