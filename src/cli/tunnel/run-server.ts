import { existsSync } from 'node:fs'
import { Revocations } from '../../authn/index.ts'
import { createKubeClient, RemoteClusterView, transportFromKubeconfig } from '../../client/index.ts'
import {
  type ClusterView,
  type Component,
  type Logger,
  runUntilDrained,
  systemClock,
} from '../../core/index.ts'
import { inClusterContext, loadKubeconfig, resolveContext } from '../../kubeconfig/index.ts'
import { refuseProblems } from '../../tunnel/index.ts'
import {
  configOfOptions,
  createTunnelServer,
  type ListeningPlaces,
  problemsOfTunnelServerOptions,
  type TunnelServerConfig,
  type TunnelServerOptions,
} from '../../tunnel/server/index.ts'
import type { Io } from '../io.ts'
import { createTunnelLogger } from '../logger.ts'
import { giveHeapHeadroom } from '../server-process.ts'

/** Time beyond the drain for what has to be closed in any case. */
const closingMs = 10_000

/** Runs a tunnel server until the process is asked to end. */
export async function runTunnelServer(
  options: TunnelServerOptions & { readonly output: 'text' | 'json' },
  io: Io,
): Promise<void> {
  refuseProblems(problemsOfTunnelServerOptions(options, existsSync))
  giveHeapHeadroom()
  const log = createTunnelLogger(options, io)
  const config = configOfOptions(options)
  warnOf(config, log)
  const cluster = needsCluster(config, options) ? await openCluster(options, io, log) : undefined
  try {
    const server = createTunnelServer({ config, ...cluster?.parts, clock: systemClock, log })
    await runUntilDrained([...(cluster?.components ?? []), server], {
      drain: io.drain,
      kill: io.kill,
      graceMs: config.drainMs + closingMs,
      log,
      onReady: () =>
        io.stdout(
          options.output === 'json'
            ? `${JSON.stringify({ serverId: config.serverId, ...server.listening })}\n`
            : startLines(options, server.listening),
        ),
    })
  } finally {
    cluster?.close()
  }
}

/** Says what an operator may not expect. */
function warnOf({ nodeTraffic, agentIdentityCheck, strategies }: TunnelServerConfig, log: Logger) {
  if (nodeTraffic.isOn && nodeTraffic.allowedDestinations.length === 0)
    log.warn({}, 'agents are refused all that they dial: --allowed-destination is missing')
  if (agentIdentityCheck === 'none')
    log.warn({}, 'addresses that agents announce are not checked: --agent-identity-check is none')
  const anyAgent = strategies.filter((name) => name === 'default' || name === 'least-loaded')
  if (agentIdentityCheck === 'node' && anyAgent.length > 0)
    log.warn(
      { strategies: anyAgent },
      'any agent gets traffic for destinations that belong to no node; without these strategies none does',
    )
}

const needsCluster = (config: TunnelServerConfig, options: TunnelServerOptions): boolean =>
  config.agents?.tokens !== undefined ||
  config.leases !== undefined ||
  options.followRevocations ||
  config.agentIdentityCheck === 'node'

/** What a server asks a cluster for. */
interface AskedCluster {
  readonly parts: { readonly view: ClusterView; readonly revocations?: Revocations }
  readonly components: readonly Component[]
  close(): void
}

/** The cluster of the kubeconfig, or the one that this process runs in as a Pod. */
async function openCluster(
  { kubeconfig, followRevocations }: TunnelServerOptions,
  io: Io,
  log: Logger,
): Promise<AskedCluster> {
  const sources = { explicitPath: kubeconfig, home: io.homeDirectory }
  const context =
    kubeconfig === ''
      ? await inClusterContext({ env: io.env })
      : resolveContext((await loadKubeconfig(sources)).config)
  const transport = await transportFromKubeconfig(context)
  const view = new RemoteClusterView(createKubeClient({ transport }))
  const close = (): void => transport.destroy()
  if (!followRevocations) return { parts: { view }, components: [], close }
  const revocations = new Revocations({ view, staleness, clock: systemClock, log })
  return { parts: { view, revocations }, components: [inBackground(revocations)], close }
}

/** After a minute without confirmation the list is stale, and no agent or client is accepted. */
const staleness = { maxAgeMs: 60_000, confirmEveryMs: 5_000 }

/** Ports open at once, whether the cluster can be reached or not; until it is, nobody is let in. */
const inBackground = (revocations: Revocations): Component => ({
  name: revocations.name,
  failed: revocations.failed,
  start: async () => {
    revocations.start().catch(() => {}) // ended before the list was read
  },
  stop: (deadline) => revocations.stop(deadline),
})

function startLines(options: TunnelServerOptions, places: ListeningPlaces): string {
  const proof = options.clusterCaCert === '' ? 'service-account tokens' : 'client certificates'
  const front = options.mode === 'grpc' ? 'gRPC' : 'HTTP CONNECT'
  const rows = [
    ['agents', places.agents, `TLS, ${proof}`],
    ['front end', places.frontEnd, front],
    ['health', places.health, '/healthz /readyz /metrics'],
    ['admin', places.admin, options.enableProfiling ? '/metrics /debug/pprof' : '/metrics'],
  ] as const
  return rows
    .flatMap(([what, where, how]) =>
      where === undefined ? [] : `${what.padEnd(9)}  ${where}  (${how})\n`,
    )
    .join('')
}
