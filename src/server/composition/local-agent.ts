import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock, Logger } from '../../core/index.ts'
import { checkPeriodically, type Pki } from '../../pki/index.ts'
import { createTunnelAgent, type TunnelAgent, tunnelAgentOptionValues } from '../../tunnel/index.ts'
import { afterNewCa } from './after-new-ca.ts'
import { agentCertificateFile, ensureAgentCertificate } from './agent-certificate.ts'

/** What the agent inside a server needs. */
export interface LocalAgentParts {
  readonly pki: Pki
  readonly server: { readonly host: string; readonly port: number }
  readonly clock: Clock
  readonly log: Logger
  /** Aborts when the server ends. */
  readonly signal: AbortSignal
}

/** Starts an agent in this process; one that cannot run is logged, because the server is good without it. */
export async function startLocalAgent(parts: LocalAgentParts): Promise<TunnelAgent | undefined> {
  const { pki, clock, signal } = parts
  const log = parts.log.child({ part: 'local agent' })
  const nodeName = hostname().toLowerCase()
  const ensure = async (): Promise<void> => {
    if (await ensureAgentCertificate(pki, nodeName, clock)) {
      log.info({ file: agentCertificateFile(pki) }, 'certificate issued')
    }
  }
  let agent: TunnelAgent | undefined
  try {
    await ensure()
    agent = createTunnelAgent({
      options: optionsOf(parts, nodeName),
      clock,
      log,
      isRoot: false,
      env: {},
    })
    await agent.start()
    checkPeriodically(ensure, { name: 'certificate of the local agent', log, signal })
    afterNewCa(pki, { name: 'certificate of the local agent', run: ensure, log })
    return agent
  } catch (err) {
    log.error({ err }, 'cannot run; everything else goes on')
    await agent?.stop(AbortSignal.abort())
    return undefined
  }
}

function optionsOf({ pki, server }: LocalAgentParts, nodeName: string) {
  const file = agentCertificateFile(pki)
  return tunnelAgentOptionValues({
    proxyServerHost: [server.host],
    proxyServerPort: server.port,
    caCert: join(pki.directory, 'ca.crt'),
    agentCert: file,
    agentKey: file,
    agentId: nodeName,
    agentIdentifiers: new URLSearchParams({ host: nodeName }).toString(),
    healthServerHost: '127.0.0.1',
    healthServerPort: 0,
    adminBindAddress: '127.0.0.1',
    adminServerPort: 0,
  })
}
