import { isRecord } from '../core/index.ts'
import { present } from './field-reader.ts'
import type { Cluster, Extensions } from './kubeconfig.ts'

/** The extension that has what a cluster entry has no field for; other clients pass over it. */
const locationExtension = 'sallyport.dev/cluster-location'

/** Where a cluster is and how it is known again. */
export interface ClusterLocation {
  /** The same for the cluster's whole life. */
  readonly clusterId?: string
  /** All equal; clients that know only one take the first. */
  readonly addresses: readonly [string, ...string[]]
  /** PEM of every root; without it the system's roots count. */
  readonly rootsPem?: string
  /** Whether the system's roots count besides those. */
  readonly systemRoots?: boolean
}

/** What the extension may say. */
interface LocationFields {
  readonly addresses: readonly string[]
  readonly clusterId?: string
  readonly systemRoots?: boolean
}

/** The location that a cluster entry states; roots in a file are not read. */
export function clusterLocation(cluster: Cluster): ClusterLocation {
  const { clusterId, systemRoots } = fieldsIn(cluster) ?? { addresses: [] }
  const { certificateAuthorityData: rootsPem } = cluster
  return {
    addresses: clusterAddresses(cluster),
    ...(clusterId !== undefined && { clusterId }),
    ...(rootsPem !== undefined && { rootsPem }),
    ...(systemRoots && { systemRoots }),
  }
}

/** A cluster entry with another location; whatever else it says stays. */
export function withLocation(cluster: Cluster, location: ClusterLocation): Cluster {
  const { certificateAuthority: file, certificateAuthorityData: _, ...rest } = cluster
  const { addresses, rootsPem } = location
  const extensions = new Map<string, unknown>(cluster.extensions)
  const { addresses: _a, clusterId: _c, systemRoots: _s, ...foreign } = extensionOf(cluster)
  const fields = { ...foreign, ...fieldsOf(location) }
  if (Object.keys(fields).length > 0) extensions.set(locationExtension, fields)
  else extensions.delete(locationExtension)
  const { extensions: _e, ...bare } = rest
  return {
    ...bare,
    server: addresses[0],
    ...(rootsPem !== undefined && { certificateAuthorityData: rootsPem }),
    ...(rootsPem === undefined && file !== undefined && { certificateAuthority: file }),
    ...(extensions.size > 0 && { extensions: extensions as Extensions }),
  }
}

function fieldsOf({ addresses, clusterId, systemRoots }: ClusterLocation): Partial<LocationFields> {
  return {
    ...(addresses.length > 1 && { addresses: [...addresses] }),
    ...(clusterId !== undefined && { clusterId }),
    ...(systemRoots && { systemRoots }),
  }
}

/** Every address of a cluster's API, `server` first; the others stand in an extension that other clients pass over. */
export function clusterAddresses(cluster: Cluster): readonly [string, ...string[]] {
  const others = fieldsIn(cluster)?.addresses ?? []
  return [cluster.server, ...new Set(others.filter((address) => address !== cluster.server))]
}

/** What is wrong with the location in the extension, if anything is. */
export function problemOfLocation(cluster: Cluster): string | undefined {
  const fields = fieldsIn(cluster)
  if (fields?.addresses.every((address) => pathOf(address) === pathOf(cluster.server)))
    return undefined
  if (fields) return `extension ${locationExtension}: every address must have the path of server`
  return `extension ${locationExtension} may have addresses: a list of URLs such as https://host:6443, clusterId: a text, systemRoots: true or false`
}

function fieldsIn(cluster: Cluster): LocationFields | undefined {
  if (!cluster.extensions?.has(locationExtension)) return { addresses: [] }
  const extension = cluster.extensions.get(locationExtension)
  if (!isRecord(extension)) return undefined
  const { addresses = [], clusterId, systemRoots } = extension
  if (!Array.isArray(addresses) || !addresses.every(isHttps)) return undefined
  if (!isTextOrAbsent(clusterId) || !isFlagOrAbsent(systemRoots)) return undefined
  return { addresses, ...present({ clusterId, systemRoots }) }
}

const isTextOrAbsent = (id: unknown): id is string | undefined =>
  id === undefined || (typeof id === 'string' && id !== '')

const isFlagOrAbsent = (flag: unknown): flag is boolean | undefined =>
  flag === undefined || typeof flag === 'boolean'

function extensionOf({ extensions }: Cluster): Readonly<Record<string, unknown>> {
  const found = extensions?.get(locationExtension)
  return isRecord(found) ? found : {}
}

const pathOf = (address: string): string =>
  URL.canParse(address) ? new URL(address).pathname.replace(/\/+$/, '') : ''

function isHttps(address: unknown): address is string {
  if (typeof address !== 'string' || !URL.canParse(address)) return false
  const { protocol, username, password, search, hash } = new URL(address)
  return protocol === 'https:' && username + password + search + hash === ''
}
