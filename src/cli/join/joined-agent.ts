import { tunnelAgentOptionValues } from '../../tunnel/agent/index.ts'
import type { Io } from '../io.ts'
import { runTunnelAgent } from '../run-tunnel-agent.ts'
import { identityFilesIn } from './join-files.ts'
import type { JoinOptions } from './join-options.ts'
import type { JoinOutcome } from './join-outcome.ts'

/** Runs a tunnel agent with the certificate of a join, until the process is told to end. */
export async function runJoinedAgent(
  { cluster, certDir, identity }: JoinOutcome & { readonly certDir: string },
  options: JoinOptions,
  io: Io,
): Promise<void> {
  const { ca, certificate, key } = identityFilesIn(certDir)
  const apiHost = new URL(cluster.server).hostname.replaceAll(/[[\]]/g, '')
  const node = identity?.username.replace(/^system:node:/, '') ?? ''
  const values = tunnelAgentOptionValues({
    caCert: ca,
    agentCert: certificate,
    agentKey: key,
    proxyServerHost: options.tunnelServer.length > 0 ? options.tunnelServer : [apiHost],
    agentIdentifiers: `host=${node}`,
    healthServerPort: options.healthServerPort,
    adminServerPort: options.adminServerPort,
    logLevel: options.logLevel,
  })
  await runTunnelAgent({ ...values, output: options.output }, io)
}
