import { readFile } from 'node:fs/promises'
import { type Clock, SallyportError } from '../../core/index.ts'
import {
  type Cluster,
  type ClusterLocation,
  changeCluster,
  clusterLocation,
  type ResolvedContext,
  withLocation,
} from '../../kubeconfig/index.ts'
import { renderCertificates } from '../../pki/trust/index.ts'
import { rootsIn } from '../cluster-info/cluster-info.ts'
import { LocationLost } from './errors.ts'
import {
  askClusterId,
  askLocation,
  type LocationAnswer,
  type LocationQuestion,
} from './fetch-location.ts'

/** What became of a refresh. */
export interface Refreshed {
  /** The entry as it should be now; the very same object if nothing has changed. */
  readonly cluster: Cluster
  readonly changed: boolean
  /** The address that answered. */
  readonly answeredBy: string
  /** What was not taken over, and why. */
  readonly notes: readonly string[]
}

/** What is to be refreshed. */
export interface RefreshOrder extends LocationQuestion {
  /** Leaves the addresses as they are, and takes over roots only. */
  readonly keepAddresses?: boolean
}

/**
 * Asks a cluster that is known where it is and whom to trust now. What it says is only taken over if it is the
 * same cluster and can be reached and verified by what it says alone. Throws LocationLost.
 */
export async function refreshLocation(order: RefreshOrder): Promise<Refreshed> {
  const { cluster } = order
  requireVerifiable(cluster)
  const known = await knownLocation(cluster)
  const answer = await askLocation(order)
  await requireSameCluster(known, answer, order)
  const proposed = proposal(known, answer.location, order.keepAddresses ?? false)
  const unchanged = { cluster, changed: false, answeredBy: answer.address, notes: [] }
  if (isSame(known, proposed)) return unchanged
  const { location, notes } = await usable(proposed, known, order)
  if (isSame(known, location)) return { ...unchanged, notes }
  return {
    cluster: withLocation(cluster, location),
    changed: true,
    answeredBy: answer.address,
    notes,
  }
}

function requireVerifiable({ server, insecureSkipTlsVerify }: Cluster): void {
  const why = insecureSkipTlsVerify
    ? 'insecure-skip-tls-verify is set'
    : 'its server is not an https address'
  if (!insecureSkipTlsVerify && server.startsWith('https:')) return
  throw new LocationLost(
    'location-unverifiable',
    `nothing that is learned from this cluster could be trusted: ${why}`,
    { hint: 'run discovery with a token, which makes an entry that can be verified' },
  )
}

/** With the roots in it that a file has. */
async function knownLocation(cluster: Cluster): Promise<ClusterLocation> {
  const location = clusterLocation(cluster)
  const { certificateAuthority: file } = cluster
  if (location.rootsPem !== undefined || file === undefined) return location
  return { ...location, rootsPem: await readFile(file, 'utf8') }
}

async function requireSameCluster(
  { clusterId }: ClusterLocation,
  { location, address }: LocationAnswer,
  order: RefreshOrder,
): Promise<void> {
  if (clusterId === undefined || location.clusterId === clusterId) return
  const found = location.clusterId ?? (await askClusterId(address, order))
  if (found === clusterId) return
  if (found === undefined)
    throw new LocationLost(
      'cluster-id-unknown',
      `${address} does not tell its id any more, so it cannot be told whether it is still cluster ${clusterId}`,
      {
        hint: 'see `sallyport cluster-info show` on the server; its next start puts the id back',
      },
    )
  throw new LocationLost(
    'different-cluster',
    `${address} is another cluster: its id is ${found}, and ${clusterId} was expected`,
    {
      hint: 'nothing was changed; if the cluster was made anew, run discovery again for a new entry',
    },
  )
}

function proposal(
  known: ClusterLocation,
  said: ClusterLocation,
  keepAddresses: boolean,
): ClusterLocation {
  const [current] = known.addresses
  const clusterId = said.clusterId ?? known.clusterId
  // The address in use goes on to be the first, as long as it is one of them.
  const addresses: ClusterLocation['addresses'] = said.addresses.includes(current)
    ? [current, ...said.addresses.filter((address) => address !== current)]
    : said.addresses
  return {
    ...said,
    addresses: keepAddresses ? known.addresses : addresses,
    ...(clusterId !== undefined && { clusterId }),
  }
}

/** What was said, if it holds; with the addresses of before, if only those are the trouble. */
async function usable(
  proposed: ClusterLocation,
  known: ClusterLocation,
  order: RefreshOrder,
): Promise<{ readonly location: ClusterLocation; readonly notes: readonly string[] }> {
  const failure = await problemOf(proposed, order)
  if (!failure) return { location: proposed, notes: [] }
  const here = { ...proposed, addresses: known.addresses }
  if (!isSame(here, proposed) && !(await problemOf(here, order))) {
    const note = `the cluster says that it is reached at ${proposed.addresses.join(', ')}, which does not work from here; the addresses stay as they were: ${failure.message}`
    return { location: here, notes: [note] }
  }
  throw new LocationLost(
    'new-location-unusable',
    `the cluster says something of itself that does not work: ${failure.message}`,
    {
      hint: 'nothing was changed; see `sallyport cluster-info show` on the server',
      cause: failure,
    },
  )
}

/** Asks again by what was said alone. */
async function problemOf(
  location: ClusterLocation,
  order: RefreshOrder,
): Promise<Error | undefined> {
  const { extensions: _, certificateAuthority: _file, ...bare } = order.cluster
  try {
    await askLocation({ ...order, cluster: withLocation(bare, location) })
    return undefined
  } catch (error) {
    order.signal.throwIfAborted()
    if (error instanceof SallyportError) return error
    throw error
  }
}

function isSame(a: ClusterLocation, b: ClusterLocation): boolean {
  const facts = ({ addresses, rootsPem, clusterId, systemRoots = false }: ClusterLocation) => [
    addresses[0],
    [...addresses].sort(),
    renderCertificates(
      rootsIn(rootsPem).toSorted((x, y) => (x.fingerprint256 < y.fingerprint256 ? -1 : 1)),
    ),
    clusterId,
    systemRoots,
  ]
  return JSON.stringify(facts(a)) === JSON.stringify(facts(b))
}

/** Where a refreshed entry is kept. */
export interface KeptEntry {
  /** The kubeconfig that has the cluster's entry. */
  readonly file: string
  readonly clusterName: string
  readonly clock: Clock
}

/** Refreshes a cluster's entry and writes it back, if the file still has the entry that was refreshed. */
export async function refreshKubeconfig(
  order: RefreshOrder & { readonly entry: KeptEntry },
): Promise<Refreshed & { readonly written: boolean }> {
  const { entry, signal, cluster } = order
  const refreshed = await refreshLocation(order)
  if (!refreshed.changed) return { ...refreshed, written: false }
  const written = await changeCluster(
    { path: entry.file, name: entry.clusterName },
    // Paths are relative there and absolute here; whatever else differs is somebody's change.
    (found) => (isSameEntry(found, cluster) ? withoutFile(found, refreshed.cluster) : undefined),
    { clock: entry.clock, signal },
  )
  return { ...refreshed, written }
}

/** The cluster's entry of a context, if it came from a file. */
export function entryOf(context: ResolvedContext, clock: Clock): KeptEntry | undefined {
  const { clusterFile: file, clusterName } = context
  return file === undefined ? undefined : { file, clusterName, clock }
}

const isSameEntry = (a: Cluster, b: Cluster): boolean =>
  a.server === b.server && a.certificateAuthorityData === b.certificateAuthorityData

function withoutFile(found: Cluster, next: Cluster): Cluster {
  const { certificateAuthority: _, ...rest } = next
  const { certificateAuthority: file } = found
  const keepsFile = next.certificateAuthorityData === undefined && file !== undefined
  return keepsFile ? { ...rest, certificateAuthority: file } : rest
}
