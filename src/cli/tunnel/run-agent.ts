import { isIPv6 } from 'node:net'
import { runUntilDrained, systemClock } from '../../core/index.ts'
import { createTunnelAgent, type TunnelAgent } from '../../tunnel/agent/index.ts'
import type { TunnelAgentOptions } from '../../tunnel/options/index.ts'
import type { Io } from '../io.ts'
import { createTunnelLogger } from '../logger.ts'
import { giveHeapHeadroom } from '../server-process.ts'

/** Runs a tunnel agent until the process is asked to end. */
export async function runTunnelAgent(
  options: TunnelAgentOptions & { readonly output: 'text' | 'json' },
  io: Io,
): Promise<void> {
  giveHeapHeadroom()
  const log = createTunnelLogger(options, io)
  const { isRoot, env } = io
  const agent = createTunnelAgent({ options, clock: systemClock, log, isRoot, env })
  await runUntilDrained([agent], {
    drain: io.drain,
    kill: io.kill,
    graceMs: options.drainTimeout,
    log,
    onReady: () =>
      io.stdout(
        options.output === 'json'
          ? `${JSON.stringify({ agentId: agent.agentId, ...agent.ports })}\n`
          : startLines(options, agent),
      ),
  })
}

function startLines(options: TunnelAgentOptions, agent: TunnelAgent): string {
  const { bindAddress, target } = options
  const servers = options.proxyServerHost.map((host) => withPort(host, options.proxyServerPort))
  const rows = [
    ['agent', agent.agentId],
    ['servers', servers.join(', ')],
    ...(bindAddress === undefined
      ? []
      : target.map((text) => ['node port', `${bindAddress} for ${text}`])),
    [
      'health',
      `${withPort(options.healthServerHost || '*', agent.ports.health)}  (/healthz /readyz /metrics)`,
    ],
    ['admin', withPort(options.adminBindAddress || '*', agent.ports.admin)],
  ] as const
  return rows.map(([what = '', where = '']) => `${what.padEnd(9)}  ${where}\n`).join('')
}

/** A server as it will be dialled: what brings a port of its own keeps it. */
function withPort(host: string, port: number): string {
  if (isIPv6(host)) return `[${host}]:${port}`
  return /:\d+$/.test(host) ? host : `${host}:${port}`
}
