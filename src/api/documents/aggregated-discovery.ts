import type { GroupVersionKind } from '../schema/index.ts'
import type { ApiGroupVersion, ApiResource } from './api-model.ts'

/** The versions of the aggregated form that clients ask for, best first. */
export const aggregatedVersions = ['v2', 'v2beta1'] as const

/** Where a kind is in the group and version that lists it, only its name is said. */
function responseKind(kind: GroupVersionKind, own: GroupVersionKind): GroupVersionKind {
  const isOwn = kind.group === own.group && kind.version === own.version
  return isOwn ? { group: '', version: '', kind: kind.kind } : kind
}

const resourceEntry = (resource: ApiResource) => ({
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
          resources: entry.resources.map(resourceEntry),
          freshness: 'Current',
        })),
    })),
  }
}
