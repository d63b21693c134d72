import { withinTime } from '../../core/index.ts'
import { type Cluster, clusterAddresses } from '../../kubeconfig/index.ts'
import { connectionFailure, DiscoveryFailed } from './errors.ts'
import { type RequestContext, tracedTransport } from './requests.ts'

/** What is to be probed, and how. */
export interface ProbeOrder {
  /** With roots, also where the system's are meant. */
  readonly cluster: Cluster
  /** The address that has answered already, if one has. */
  readonly proven?: string
  readonly context: RequestContext
  readonly onProbe: (address: string) => void
}

/** Checks that clients of the cluster will reach it where it says it is; returns what is wrong with some of its addresses. */
export async function probeAddresses(order: ProbeOrder): Promise<string[]> {
  const addresses = clusterAddresses(order.cluster)
  const failures: DiscoveryFailed[] = []
  let reached = false
  for (const address of addresses) {
    const failure = isSame(address, order.proven) ? undefined : await probe(address, order)
    if (failure) failures.push(failure)
    else reached = true
  }
  const [first] = failures
  if (reached || !first) return failures.map(({ message }) => message)
  // No address of a document's is wrong if somebody answers there whom its CA does not vouch for.
  if (order.proven === undefined && first.reason === 'server-not-trusted') throw first
  throw unreachable(addresses, first, order)
}

const isSame = (address: string, proven: string | undefined): boolean =>
  proven !== undefined && new URL(address).href === new URL(proven).href

/** Any answer will do: it was given by somebody whom the roots vouch for. */
async function probe(address: string, order: ProbeOrder): Promise<DiscoveryFailed | undefined> {
  const { context, cluster } = order
  order.onProbe(address)
  // Loaded here: where the address that was asked is the one that is announced, nobody needs it.
  const { transportFromKubeconfig } = await import('../../client/index.ts')
  const { extensions: _, ...alone } = cluster
  const reached = { cluster: { ...alone, server: address }, user: {} }
  const transport = tracedTransport(await transportFromKubeconfig(reached), context.log)
  try {
    const request = { method: 'GET', path: '/version', headers: { accept: 'application/json' } }
    const { body } = await withinTime(context.timeoutMs, context.signal, (signal) =>
      transport.send({ ...request, signal }),
    )
    body.destroy()
    return undefined
  } catch (error) {
    const failure = connectionFailure(address, causeOf(error), context.signal)
    if (failure.reason === 'aborted') throw failure
    return failure
  } finally {
    transport.destroy()
  }
}

const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? causeOf(error.cause) : error

function unreachable(
  addresses: readonly string[],
  first: DiscoveryFailed,
  { proven }: ProbeOrder,
): DiscoveryFailed {
  const where = addresses.length === 1 ? `at ${addresses[0]}` : `at any of ${addresses.join(', ')}`
  const contrast = proven === undefined ? '' : `, though ${proven} answers`
  return new DiscoveryFailed(
    'advertised-address-unreachable',
    `the cluster says that it is reached ${where}, but it is not from here${contrast}: ${first.message}`,
    {
      hint:
        proven === undefined
          ? 'start the API server, or correct the address in the document'
          : `--keep-address uses ${proven} instead; \`sallyport cluster-info set-server\` corrects what the cluster says`,
      mayPass: first.mayPass,
      cause: first,
    },
  )
}
