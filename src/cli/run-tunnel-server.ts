import { existsSync } from 'node:fs'
import {
  createKubeClient,
  RemoteClusterView,
  type Transport,
  transportFromKubeconfig,
} from '../client/index.ts'
import { runUntilDrained, systemClock, WrongUsage } from '../core/index.ts'
import { inClusterContext, loadKubeconfig, resolveContext } from '../kubeconfig/index.ts'
import {
  configOfOptions,
  createTunnelServer,
  type ListeningPlaces,
  problemsOfTunnelServerOptions,
  type TunnelServerOptions,
} from '../tunnel/server/index.ts'
import type { Io } from './io.ts'
import { createLogger } from './stderr-logger.ts'

/** Time beyond the drain for what has to be closed in any case. */
const closingMs = 10_000
const debugVerbosity = 5

/** Runs a tunnel server until the process is asked to end. */
export async function runTunnelServer(
  options: TunnelServerOptions & { readonly output: 'text' | 'json' },
  io: Io,
): Promise<void> {
  const problems = problemsOfTunnelServerOptions(options, existsSync)
  if (problems.length > 0) throw new WrongUsage(problems.join('\n'))
  const text = options.logFormat === 'text' || (options.logFormat === 'auto' && io.interactive)
  const log = createLogger({
    level: options.v >= debugVerbosity ? 'debug' : options.logLevel,
    format: text ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const config = configOfOptions(options)
  const transport =
    config.agents?.tokens || config.leases ? await openTransport(options, io) : undefined
  try {
    const view = transport && new RemoteClusterView(createKubeClient({ transport }))
    const server = createTunnelServer({ config, clock: systemClock, log, ...(view && { view }) })
    await runUntilDrained([server], {
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
    transport?.destroy()
  }
}

/** The cluster of the kubeconfig, or the one that this process runs in as a Pod. */
async function openTransport({ kubeconfig }: TunnelServerOptions, io: Io): Promise<Transport> {
  if (kubeconfig === '') return transportFromKubeconfig(await inClusterContext({ env: io.env }))
  const sources = { explicitPath: kubeconfig, home: io.homeDirectory }
  return transportFromKubeconfig(resolveContext((await loadKubeconfig(sources)).config))
}

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
