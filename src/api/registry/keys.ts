import type { Key, Kind, Query } from '../../core/index.ts'

const root = (kind: Kind): string => `${kind.group || 'core'}/${kind.resource}/`

/** Where the store keeps an object. */
export function storeKey(kind: Kind, key: Key): string {
  return kind.namespaced ? `${root(kind)}${key.namespace}/${key.name}` : `${root(kind)}${key.name}`
}

/** The prefix of all objects that a query can mean. */
export function storePrefix(kind: Kind, query: Pick<Query, 'namespace'>): string {
  return kind.namespaced && query.namespace ? `${root(kind)}${query.namespace}/` : root(kind)
}

/** Namespace and name of the object behind a store key. */
export function keyOf(kind: Kind, storedAt: string): Key {
  const rest = storedAt.slice(root(kind).length)
  if (!kind.namespaced) return { name: rest }
  const slash = rest.indexOf('/')
  return { namespace: rest.slice(0, slash), name: rest.slice(slash + 1) }
}
