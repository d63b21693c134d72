import { networkInterfaces } from 'node:os'
import {
  type AddonTokenVerifier,
  addonJwksPath,
  type GuardOptions,
  openVerifier,
  type PortPair,
  problemsOfOutput,
  problemsOfPlaces,
  type TrustHost,
  type TrustOptions,
} from '../../addon/guard/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { CommandFailed, WrongUsage } from '../../core/index.ts'
import type { ResolvedContext } from '../../kubeconfig/index.ts'
import { type GuardValues, outputOf, parsePortPair } from '../guard-options.ts'
import type { Io } from '../io.ts'

/** Where a guard listens, and for whom. */
type GuardPlaces = Required<Pick<GuardOptions, 'addresses' | 'ports' | 'health'>>

/** Reads the places from the options and the Pod's own addresses. */
function placesOf(values: GuardValues, io: Io): GuardPlaces {
  const { healthPort: port, probePath } = values
  return {
    addresses: listenAddresses(values, io),
    ports: portPairs(values),
    health: { port, ...(probePath !== undefined && { probePath }) },
  }
}

function portPairs({ forward, listenPort, forwardIp, forwardPort }: GuardValues): PortPair[] {
  if (forward.length === 0) return [{ listenPort, forward: { host: forwardIp, port: forwardPort } }]
  return forward.flatMap((text) => {
    const pair = parsePortPair(text)
    if (!pair) return []
    return [
      { listenPort: pair.listenPort, forward: { host: pair.host ?? forwardIp, port: pair.port } },
    ]
  })
}

/** Specific addresses only: the add-on may listen on the same port of loopback. */
function listenAddresses({ listenAddress, listenOnPodIp }: GuardValues, io: Io): readonly string[] {
  if (listenAddress.length > 0) return listenAddress
  if (!listenOnPodIp)
    throw new CommandFailed(
      'NO_LISTEN_ADDRESS',
      "the Pod's addresses are not wanted, nor is another",
      {
        hint: 'give --listen-address, or leave --listen-on-pod-ip as it is',
      },
    )
  const told = (io.env['POD_IPS'] || io.env['POD_IP'] || '').split(',').map((text) => text.trim())
  const given = told.filter((address) => address !== '')
  if (given.length > 0) return given
  const own = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address)
  if (own.length > 0) return own
  throw new CommandFailed('NO_LISTEN_ADDRESS', "the Pod's addresses are not known", {
    hint: 'set POD_IP from status.podIP by the downward API, or give --listen-address',
  })
}

/** What a guard is told and what it finds around it. */
export interface Surroundings {
  readonly places: GuardPlaces
  readonly verifier: AddonTokenVerifier
  /** Absent: nothing is asked of the cluster. */
  readonly cluster?: Cluster
  /** Absent: the audiences are given. */
  readonly podName?: string
}

/** Finds all that the options leave to the Pod and its cluster; what is wrong and what is missing is told in one message. */
export async function findSurroundings(
  values: GuardValues,
  io: Io,
  host: TrustHost,
): Promise<Surroundings> {
  const missing: CommandFailed[] = []
  const note = (error: unknown): undefined => {
    if (!(error instanceof CommandFailed)) throw error
    missing.push(error)
  }
  const places = attempt(() => placesOf(values, io), note)
  const wrong = [...(places ? problemsOfPlaces(places) : []), ...problemsOfOutput(outputOf(values))]
  const cluster = await reachCluster(values, io).catch(note)
  const podName = attempt(() => podNameOf(values, io), note)
  const isUseless = wrong.length + missing.length > 0
  // Nobody is asked for keys in vain: then only the CA is looked at.
  const trust = isUseless ? { caFile: values.caFile } : trustOf(values, cluster)
  const verifier = await openVerifier(trust, host).catch(note)
  if (wrong.length > 0) throw new WrongUsage(listed([...wrong, ...missing.map(inWords)]))
  if (!places || !verifier || missing.length > 0) throw allOf(missing)
  return {
    places,
    verifier,
    ...(cluster && { cluster }),
    ...(podName !== undefined && { podName }),
  }
}

function attempt<T>(work: () => T, note: (error: unknown) => undefined): T | undefined {
  try {
    return work()
  } catch (error) {
    return note(error)
  }
}

/** Only where its labels are asked for. */
function podNameOf({ audience, podName }: GuardValues, io: Io): string | undefined {
  if (audience.length > 0) return undefined
  const name = podName ?? io.env['HOSTNAME']
  if (name) return name
  throw new CommandFailed('NO_POD_NAME', "the Pod's name is not known", {
    hint: 'set POD_NAME from metadata.name by the downward API, or give --audience',
  })
}

/** One failure that says what several say. */
function allOf(missing: readonly CommandFailed[]): CommandFailed {
  const [first] = missing
  if (first && missing.length === 1) return first
  return new CommandFailed('GUARD_NOT_IN_POD', listed(missing.map(inWords)), {
    hint: 'outside of a cluster give --audience NAMESPACE/NAME and --ca-file FILE',
  })
}

const inWords = ({ message, hint = '' }: CommandFailed): string => `${message} (${hint})`

function listed(problems: readonly string[]): string {
  const [first = ''] = problems
  if (problems.length === 1) return first
  return ['several things are wrong:', ...problems.map((problem) => `  - ${problem}`)].join('\n')
}

/** The API server and how to speak to it. */
interface Cluster {
  readonly context: ResolvedContext
  readonly client: KubeClient
}

/** Only where something is asked for: with x5c and a static audience a guard needs no API server at all. */
async function reachCluster(values: GuardValues, io: Io): Promise<Cluster | undefined> {
  const { kubeconfig, context: name, keys, audience, jwksUrl } = values
  const isAsked = keys.includes('handshake') || (keys.includes('jwks') && jwksUrl === undefined)
  if (audience.length > 0 && !isAsked) return undefined
  const [client, { inClusterContext, loadContext }, { pluginHostOf }] = await Promise.all([
    import('../../client/index.ts'),
    import('../../kubeconfig/index.ts'),
    import('../cluster-source.ts'),
  ])
  const context =
    kubeconfig === undefined && name === undefined
      ? await inClusterContext({ env: io.env })
      : await loadContext({ explicitPath: kubeconfig, home: io.homeDirectory }, name)
  const host = { plugins: await pluginHostOf(io), proxyEnv: io.env }
  const transport = await client.transportFromKubeconfig(context, host)
  return { context, client: client.createKubeClient({ transport }) }
}

function trustOf(values: GuardValues, cluster: Cluster | undefined): TrustOptions {
  const { keys, jwksUrl } = values
  const server = cluster && new URL(cluster.context.cluster.server)
  const load = async (signal: AbortSignal): Promise<Buffer> => {
    if (!cluster) throw new TypeError('the API server is not known')
    const headers = { accept: 'application/jwk-set+json, application/json' }
    const asked = { method: 'GET', path: addonJwksPath, headers }
    return (await cluster.client.request(asked, signal)).body
  }
  return {
    caFile: values.caFile,
    x5c: keys.includes('x5c'),
    serverName: values.apiServerName,
    issuer: values.tokenIssuer,
    leewaySeconds: values.clockSkew / 1000,
    longestSeconds: values.maxTokenLifetime / 1000,
    ...(keys.includes('jwks') && { jwks: jwksUrl === undefined ? { load } : { url: jwksUrl } }),
    ...(keys.includes('handshake') &&
      server && {
        handshake: {
          host: server.hostname.replaceAll(/[[\]]/g, ''),
          port: Number(server.port || 443),
        },
      }),
  }
}
