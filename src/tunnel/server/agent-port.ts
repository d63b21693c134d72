import type { Server } from 'node:net'
import { longestTimerMs } from '../../core/index.ts'
import type { CallRequest, Keepalive } from '../../grpc/index.ts'
import { plainAddress, sourceOf } from '../addresses/source.ts'
import {
  allCapabilities,
  BufferBudgets,
  defaultLinkLimits,
  LinkServer,
  type PacketTally,
} from '../link/index.ts'
import { ConnectionLimit } from '../ports/connection-limit.ts'
import { listen, portOf, stopListening } from '../ports/listen.ts'
import { SparseLog } from '../sampled-log.ts'
import { AgentAdmission, type AgentAdmissionParts } from './agent-authentication.ts'
import { identityOfCertificate } from './agent-identity.ts'
import { AgentRefused } from './agent-registry.ts'
import { AgentMetadataInvalid, describeAgent } from './agent-session.ts'
import type { AgentPortConfig, TunnelServerConfig } from './config.ts'
import type { TunnelHub } from './hub.ts'
import { openTlsFiles, type TlsFiles } from './listening/tls-files.ts'

const defaultAnswerMs = 20_000

/** The keepalive of a flag; 0 is as good as never. */
export const keepaliveOf = (
  timeMs: number,
  timeoutMs = defaultAnswerMs,
): { readonly keepalive: Keepalive } => ({
  keepalive: { timeMs: timeMs === 0 ? longestTimerMs : timeMs, timeoutMs },
})

const mostStrangers = 1_000
const why = 'it did not prove who it is: no TLS, or a certificate that is not trusted here'

/** The connections of a port that have not proven yet who they are; those that end like that are told as refused. */
export const strangersAt = (whom: 'agent' | 'client', log: SparseLog): ConnectionLimit =>
  new ConnectionLimit(mostStrangers, {
    dropped: () =>
      log.warn('crowd', { limit: mostStrangers }, `too many wait to be known as ${whom}s`),
    left: ({ bytesRead }, from) => {
      // Load balancers knock without a word.
      if (bytesRead > 0)
        log.warn(sourceOf(from), { from: plainAddress(from), why }, `${whom} refused`)
    },
  })

/** What the port for agents is made of. */
export interface AgentPortParts extends Omit<AgentAdmissionParts, 'agents'> {
  readonly config: TunnelServerConfig & { readonly agents: AgentPortConfig }
  readonly hub: TunnelHub
  readonly packets: PacketTally
}

/** An agent needs one. */
const maxStreams = 10
/** Each is authenticated, announces addresses and is logged. */
const maxNewStreams = 100

/** The port on which agents connect: TLS, and a client certificate or a token for each. */
export class AgentPort {
  readonly #parts: AgentPortParts
  readonly #links: LinkServer
  readonly #admission: AgentAdmission
  readonly #strangers: ConnectionLimit
  readonly #sparseLog: SparseLog
  #tls: TlsFiles | undefined
  #server: Server | undefined

  constructor(parts: AgentPortParts) {
    const { config, hub, packets, clock, log } = parts
    this.#parts = parts
    this.#admission = new AgentAdmission({ ...parts, agents: config.agents })
    this.#sparseLog = new SparseLog(log, clock)
    this.#strangers = strangersAt('agent', this.#sparseLog)
    const limits = { ...defaultLinkLimits, ...config.limits }
    const budgets = new BufferBudgets(limits.peerBufferBytes)
    this.#links = new LinkServer({
      path: '/AgentService/Connect',
      maxStreams,
      maxNewStreams,
      // Offered only if it is served: an agent opens its listeners on this word.
      capabilities: allCapabilities.filter((name) => name !== 'rdial' || config.nodeTraffic.isOn),
      log,
      ...keepaliveOf(config.agents.keepaliveMs, config.agents.keepaliveAnswerMs),
      limits,
      budgetOf: ({ socket }) => budgets.of(this.#admission.peerOf(socket)),
      packets,
      authenticate: (request) => this.#authenticate(request),
      onLink: (link, request) =>
        hub.attachAgent(link, describeAgent(link.metadata), {
          peer: this.#admission.peerOf(request.socket),
          identity: this.#admission.identityOf(request),
        }),
    })
  }

  /** Streams of agents. */
  get streamCount(): number {
    return this.#links.linkCount
  }

  get port(): number {
    return this.#server ? portOf(this.#server) : 0
  }

  /** Opens the port and says where it is. */
  async open(): Promise<string> {
    const { config, clock, log } = this.#parts
    const { agents, tlsMinVersion: minVersion, ciphers } = config
    this.#tls = await openTlsFiles({
      ...agents.tls,
      minVersion,
      ...(ciphers !== undefined && { ciphers }),
      clock,
      log,
    })
    this.#admission.follow(this.#tls)
    const server = this.#links.secureServer(this.#tls.options)
    this.#tls.follow(server)
    this.#strangers.watch(server)
    this.#server = server
    return listen(server, agents, 'agents')
  }

  /** Accepts no more agents; those that are connected stay. */
  stopAccepting(): void {
    this.#tls?.close()
    // Not awaited: it resolves when the last connection has gone.
    if (this.#server) void stopListening(this.#server)
  }

  close(): void {
    this.stopAccepting()
    this.#links.close()
  }

  async #authenticate(request: CallRequest) {
    const { serverId, serverCount } = this.#parts.config
    try {
      await this.#admission.admit(request)
      this.#strangers.release(request.socket)
      return { metadata: { serverid: serverId, servercount: String(serverCount) } }
    } catch (error) {
      if (!(error instanceof AgentRefused || error instanceof AgentMetadataInvalid)) throw error
      const from = plainAddress(request.socket.remoteAddress)
      const why = error.detail ?? error.message
      const who = identityOfCertificate(request.socket)?.fields
      this.#sparseLog.warn(sourceOf(from), { from, ...who, why }, 'agent refused')
      return { grpcStatus: 2, message: error.message }
    }
  }
}
