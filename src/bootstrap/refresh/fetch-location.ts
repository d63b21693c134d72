import { createKubeClient, type KubeClient, transportFromKubeconfig } from '../../client/index.ts'
import {
  hasReason,
  type KubeObject,
  type Logger,
  silentLogger,
  wellKnownKinds,
} from '../../core/index.ts'
import type { ContextHost } from '../../credentials/index.ts'
import { firstThatWorks } from '../../credentials/transport/index.ts'
import {
  type Cluster,
  type ClusterLocation,
  clusterAddresses,
  clusterLocation,
  type KubeconfigUser,
  withLocation,
} from '../../kubeconfig/index.ts'
import { clusterInfoKey, documentIn, readClusterInfoText } from '../cluster-info/cluster-info.ts'
import { maxDocumentBytes, maxRequestMs } from '../discovery/limits.ts'
import { tracedTransport } from '../discovery/requests.ts'
import { addressFailures, LocationLost, lostBy } from './errors.ts'

/** Whom to ask, and as whom. */
export interface LocationQuestion {
  readonly cluster: Cluster
  readonly user: KubeconfigUser
  readonly host?: ContextHost
  readonly signal: AbortSignal
  /** Told at `trace` of every request. */
  readonly log?: Logger
}

/** What a cluster says of itself, over a connection that was verified. */
export interface LocationAnswer {
  readonly location: ClusterLocation
  /** The address that answered. */
  readonly address: string
}

const headStartMs = 2_000

/** Asks a cluster where it is, at one address after the other; throws LocationLost. */
export async function askLocation(question: LocationQuestion): Promise<LocationAnswer> {
  const addresses = clusterAddresses(question.cluster)
  const attempts = addresses.map((address) => () => askAddress(address, question))
  const outcome = await firstThatWorks(attempts, { headStartMs, undo: () => {} })
  question.signal.throwIfAborted()
  if ('value' in outcome) return outcome.value
  const failures = outcome.failures.flatMap((error, index) =>
    addressFailures(error, addresses[index] ?? ''),
  )
  const answered = outcome.failures.find((error) => !lostBy(addressFailures(error, '')))
  if (answered instanceof Error) throw answered
  throw lostBy(failures) ?? new TypeError('every address failed, but none of them says why')
}

async function askAddress(address: string, question: LocationQuestion): Promise<LocationAnswer> {
  const location = await withClient(address, question, {}, async (client) => {
    try {
      return await read(client, address, question.signal)
    } catch (error) {
      if (!hasReason(error, 'Unauthorized', 'Forbidden')) throw error
      return undefined
    }
  })
  if (location) return { location, address }
  return { location: await askAsUser(address, question), address }
}

/** Strangers may read it in most clusters, so that no plugin need run and no credential be sent. */
function askAsUser(address: string, question: LocationQuestion): Promise<ClusterLocation> {
  return withClient(address, question, question.user, async (client) => {
    try {
      return await read(client, address, question.signal)
    } catch (error) {
      if (!hasReason(error, 'Unauthorized', 'Forbidden')) throw error
      throw new LocationLost(
        'location-refused',
        `${address} lets neither strangers nor this user read kube-public/cluster-info`,
        { hint: 'have the user bound to a role that may get it, or log in again', cause: error },
      )
    }
  })
}

async function read(
  client: KubeClient,
  address: string,
  signal: AbortSignal,
): Promise<ClusterLocation> {
  const text = documentIn(await client.get(wellKnownKinds.configMap, clusterInfoKey, signal))
  if (text !== undefined) return readClusterInfoText(text, `cluster-info of ${address}`)
  throw new LocationLost('location-refused', `${address} has no kube-public/cluster-info`, {
    hint: 'on a cluster of kubeadm `kubeadm init phase bootstrap-token` writes it',
  })
}

/** The id of the cluster itself, for those who may see it. */
export async function askClusterId(
  address: string,
  question: LocationQuestion,
): Promise<string | undefined> {
  return withClient(address, question, question.user, async (client) => {
    const key = { name: 'kube-system' }
    const namespace: KubeObject | undefined = await client
      .get(wellKnownKinds.namespace, key, question.signal)
      .catch((error: unknown) => {
        if (hasReason(error, 'Unauthorized', 'Forbidden')) return undefined
        throw error
      })
    return namespace?.metadata.uid
  })
}

/** A client of one address alone. */
async function withClient<T>(
  address: string,
  { cluster, host, log = silentLogger }: LocationQuestion,
  user: KubeconfigUser,
  use: (client: KubeClient) => Promise<T>,
): Promise<T> {
  const { systemRoots } = clusterLocation(cluster)
  const { extensions: _, ...bare } = cluster
  const alone = systemRoots
    ? withLocation(bare, { ...clusterLocation(bare), addresses: [address], systemRoots })
    : { ...bare, server: address }
  const connected = await transportFromKubeconfig({ cluster: alone, user }, host)
  const transport = tracedTransport(connected, log)
  try {
    return await use(
      createKubeClient({ transport, timeoutMs: maxRequestMs, maxAnswerBytes: maxDocumentBytes }),
    )
  } finally {
    transport.destroy()
  }
}
