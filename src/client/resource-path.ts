import { badRequest, type Key, type Kind } from '../core/index.ts'

const notASegment = /^\.{0,2}$|[/%]/

/** A name as part of a path; refuses what would make it another path. */
function segment(what: string, text: string): string {
  if (notASegment.test(text))
    throw badRequest(`${what} ${JSON.stringify(text)} cannot be part of a path`)
  return encodeURIComponent(text)
}

/** Where the API serves a group and version. */
export const groupVersionPath = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group
    ? `/apis/${segment('API group', group)}/${segment('version', version)}`
    : `/api/${segment('version', version)}`

/** Where all objects of a kind are, or those of one namespace. */
export function collectionPath(kind: Kind, namespace: string | undefined): string {
  const root = groupVersionPath(kind)
  const resource = segment('resource', kind.resource)
  return kind.namespaced && namespace
    ? `${root}/namespaces/${segment('namespace', namespace)}/${resource}`
    : `${root}/${resource}`
}

/** Where one object is, or a subresource of it. */
export function objectPath(kind: Kind, key: Key, subresource?: string): string {
  requireNamespace(kind, key.namespace)
  const path = `${collectionPath(kind, key.namespace)}/${segment('name', key.name)}`
  return subresource ? `${path}/${segment('subresource', subresource)}` : path
}

/** Where an object of a kind is created. */
export function creationPath(kind: Kind, namespace: string | undefined): string {
  requireNamespace(kind, namespace)
  return collectionPath(kind, namespace)
}

function requireNamespace(kind: Kind, namespace: string | undefined): void {
  if (kind.namespaced && !namespace) throw badRequest(`a namespace is needed for ${kind.resource}`)
}
