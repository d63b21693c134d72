import { createHash } from 'node:crypto'
import { apiVersionOf } from '../../core/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import type { ApiGroupVersion, ApiResource, ApiSubresource } from './api-model.ts'

/** `/api`: the versions of the core group, and where clients find the server. */
export const apiVersionsDocument = (api: readonly ApiGroupVersion[], serverAddress: string) => ({
  kind: 'APIVersions',
  versions: api.filter(({ group }) => group === '').map(({ version }) => version),
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
})

/** Names a stored kind in its stored version, so that clients notice when that changes. */
function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  const hash = createHash('sha256').update(`${group}/${version}/${kind}`).digest()
  return hash.subarray(0, 8).toString('base64')
}

const resourceEntry = (resource: ApiResource) => ({
  name: resource.resource,
  singularName: resource.singular,
  namespaced: resource.namespaced,
  kind: resource.kind.kind,
  verbs: resource.verbs,
  ...(resource.shortNames.length > 0 && { shortNames: resource.shortNames }),
  ...(resource.categories.length > 0 && { categories: resource.categories }),
  ...(resource.isStored && { storageVersionHash: storageVersionHash(resource.kind) }),
})

function subresourceEntry(resource: ApiResource, { name, kind, verbs }: ApiSubresource) {
  const isForeign = kind.group !== resource.kind.group || kind.version !== resource.kind.version
  return {
    name: `${resource.resource}/${name}`,
    singularName: '',
    namespaced: resource.namespaced,
    ...(isForeign && { group: kind.group, version: kind.version }),
    kind: kind.kind,
    verbs,
  }
}

/** `/api/v1` and `/apis/GROUP/VERSION`: the resources of one group and version. */
export const resourceListDocument = (groupVersion: ApiGroupVersion) => ({
  kind: 'APIResourceList',
  ...(groupVersion.group !== '' && { apiVersion: 'v1' }),
  groupVersion: apiVersionOf(groupVersion),
  resources: groupVersion.resources.flatMap((resource) => [
    resourceEntry(resource),
    ...resource.subresources.map((part) => subresourceEntry(resource, part)),
  ]),
})

function groupEntry(group: string, api: readonly ApiGroupVersion[]) {
  const versions = api
    .filter((entry) => entry.group === group)
    .map((entry) => ({ groupVersion: apiVersionOf(entry), version: entry.version }))
  return { name: group, versions, preferredVersion: versions[0] }
}

/** The named groups, in order. */
export const groupNames = (api: readonly ApiGroupVersion[]): string[] => [
  ...new Set(api.map(({ group }) => group).filter((group) => group !== '')),
]

/** `/apis`: every group but the core one. */
export const groupListDocument = (api: readonly ApiGroupVersion[]) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupNames(api).map((group) => groupEntry(group, api)),
})

/** `/apis/GROUP`: the versions of one group. */
export const groupDocument = (api: readonly ApiGroupVersion[], group: string) => ({
  kind: 'APIGroup',
  apiVersion: 'v1',
  ...groupEntry(group, api),
})

/** The versions of the aggregated form that clients ask for, best first. */
export const aggregatedVersions = ['v2', 'v2beta1'] as const

/** Where a kind is in the group and version that lists it, only its name is said. */
function responseKind(kind: GroupVersionKind, own: GroupVersionKind): GroupVersionKind {
  const isOwn = kind.group === own.group && kind.version === own.version
  return isOwn ? { group: '', version: '', kind: kind.kind } : kind
}

const resourceEntry_aggregatedDiscovery = (resource: ApiResource) => ({
  resource: resource.resource,
  responseKind: responseKind(resource.kind, resource.kind),
  scope: resource.namespaced ? 'Namespaced' : 'Cluster',
  singularResource: resource.singular,
  verbs: resource.verbs,
  ...(resource.shortNames.length > 0 && { shortNames: resource.shortNames }),
  ...(resource.categories.length > 0 && { categories: resource.categories }),
  ...(resource.subresources.length > 0 && {
    subresources: resource.subresources.map(({ name, kind, verbs }) => ({
      subresource: name,
      responseKind: responseKind(kind, resource.kind),
      verbs,
    })),
  }),
})

/** All groups with all their resources in one document, for `/api` or `/apis`. */
export function aggregatedDocument(
  api: readonly ApiGroupVersion[],
  root: '/api' | '/apis',
  version: (typeof aggregatedVersions)[number],
) {
  const shown = api.filter(({ group }) => (group === '') === (root === '/api'))
  const groups = [...new Set(shown.map(({ group }) => group))]
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === '' ? {} : { name: group },
      versions: shown
        .filter((entry) => entry.group === group)
        .map((entry) => ({
          version: entry.version,
          resources: entry.resources.map(resourceEntry_aggregatedDiscovery),
          freshness: 'Current',
        })),
    })),
  }
}
