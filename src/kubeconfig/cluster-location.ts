import { isRecord } from '../core/index.ts'
import type { Cluster } from './kubeconfig.ts'

const extensionName = 'sallyport.dev/cluster-location'

/** Every address of a cluster's API, `server` first; the others stand in an extension that other clients pass over. */
export function clusterAddresses(cluster: Cluster): readonly [string, ...string[]] {
  const others = addressesIn(cluster) ?? []
  return [cluster.server, ...new Set(others.filter((address) => address !== cluster.server))]
}

/** What is wrong with the further addresses of a cluster, if anything is. */
export function problemOfLocation(cluster: Cluster): string | undefined {
  if (!cluster.extensions?.has(extensionName) || addressesIn(cluster)) return undefined
  return `extension ${extensionName} must have addresses: a list of URLs such as https://host:6443`
}

function addressesIn(cluster: Cluster): string[] | undefined {
  const location = cluster.extensions?.get(extensionName)
  const addresses: unknown = isRecord(location) ? location['addresses'] : undefined
  if (!Array.isArray(addresses) || !addresses.every(isHttps)) return undefined
  return addresses
}

const isHttps = (address: unknown): address is string =>
  typeof address === 'string' && URL.canParse(address) && new URL(address).protocol === 'https:'
