import { networkInterfaces } from 'node:os'
import {
  type AudienceList,
  addonJwksPath,
  Guard,
  openVerifier,
  type PortPair,
  ServiceAudiences,
  staticAudiences,
  type TrustHost,
  type TrustOptions,
} from '../addon/guard/index.ts'
import type { KubeClient } from '../client/index.ts'
import { CommandFailed, runUntilDrained, systemClock } from '../core/index.ts'
import type { ResolvedContext } from '../kubeconfig/index.ts'
import { type GuardValues, parsePortPair } from './guard-options.ts'
import type { Io } from './io.ts'
import { createLogger } from './stderr-logger.ts'

const graceMs = 10_000

/** Runs a guard until the process is asked to end. */
export async function runGuard(values: GuardValues, io: Io): Promise<void> {
  const ended = new AbortController()
  const log = createLogger({
    level: values.logLevel,
    format: io.interactive ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const host = { clock: systemClock, log, signal: ended.signal }
  try {
    const ports = portPairs(values)
    const addresses = listenAddresses(values, io)
    const cluster = await reachCluster(values, io)
    const guard = new Guard({
      addresses,
      ports,
      health: {
        port: values.healthPort,
        ...(values.probePath !== undefined && { probePath: values.probePath }),
      },
      verifier: await openVerifier(trustOf(values, cluster), host),
      audiences: await audiencesOf(values, io, { cluster, host }),
      output: identityOutput(values),
      limits: {
        maxRequestMs: values.maxRequestDuration,
        maxTunnelMs: values.maxTunnelDuration,
        tunnelIdleMs: values.tunnelIdleTimeout,
      },
      accessLog: { level: values.accessLog, write: (lines) => io.stderr(lines) },
      clock: systemClock,
      log,
    })
    const { drain, kill } = io
    const onReady = (): void => io.stdout(startText(guard, ports, values))
    await runUntilDrained([guard], { drain, kill, graceMs, log, onReady })
  } finally {
    ended.abort()
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
    import('../client/index.ts'),
    import('../kubeconfig/index.ts'),
    import('./plugin-host.ts'),
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

async function audiencesOf(
  values: GuardValues,
  io: Io,
  { cluster, host }: { readonly cluster: Cluster | undefined; readonly host: TrustHost },
): Promise<AudienceList> {
  if (!cluster || values.audience.length > 0) return staticAudiences(values.audience)
  const podName = values.podName ?? io.env['HOSTNAME']
  if (!podName)
    throw new CommandFailed('NO_POD_NAME', "the Pod's name is not known", {
      hint: 'set POD_NAME from metadata.name by the downward API, or give --audience',
    })
  const { RemoteClusterView } = await import('../client/index.ts')
  const audiences = new ServiceAudiences({
    ...host,
    view: new RemoteClusterView(cluster.client),
    namespace: values.namespace ?? cluster.context.namespace,
    podName,
    maxAgeMs: values.audienceMaxAge,
  })
  await audiences.start()
  return audiences
}

const identityOutput = ({ userHeader, groupsHeader, uidHeader, impersonation }: GuardValues) => ({
  userHeader,
  impersonation,
  ...(groupsHeader !== undefined && { groupsHeader }),
  ...(uidHeader !== undefined && { uidHeader }),
})

function startText(guard: Guard, ports: readonly PortPair[], { output }: GuardValues): string {
  const { places } = guard
  if (output === 'json') return `${JSON.stringify({ listening: places })}\n`
  const perPort = places.length / (ports.length + 1)
  const rows = places.map((place, index) => {
    const forward = ports[Math.floor(index / perPort)]?.forward
    return forward
      ? `guarding  ${place}  for ${forward.host}:${forward.port}\n`
      : `health    ${place}  (/healthz /readyz /metrics)\n`
  })
  return rows.join('')
}
