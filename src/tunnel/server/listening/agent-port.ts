import type { Server, Socket } from 'node:net'
import type { Clock, ClusterView, Logger } from '../../../core/index.ts'
import { sourceOf } from '../../addresses/index.ts'
import { createGrpcService, type GrpcService, type LinkRequest } from '../../grpc/index.ts'
import { allCapabilities, type PacketTally } from '../../link/index.ts'
import {
  type ConnectionLimit,
  FairLimit,
  listen,
  portOf,
  SparseLog,
  stopListening,
} from '../../ports/index.ts'
import { AgentMetadataInvalid } from '../agent-identifiers.ts'
import { describeAgent } from '../agent-session.ts'
import { AgentRefused, ClientDistrusted } from '../errors.ts'
import type { AgentPortConfig, TunnelServerConfig } from '../server-config.ts'
import { type AgentCheck, createTokenCheck } from '../token-check.ts'
import type { TunnelHub } from '../tunnel-hub.ts'
import { type ClientTrust, type RevocationList, trustIn } from './client-trust.ts'
import { keepaliveOf } from './keepalive.ts'
import { strangersAt } from './strangers.ts'
import { openTlsFiles, type TlsFiles } from './tls-files.ts'

/** What the port for agents is made of. */
export interface AgentPortParts {
  readonly config: TunnelServerConfig & { readonly agents: AgentPortConfig }
  readonly hub: TunnelHub
  readonly packets: PacketTally
  /** For token reviews. */
  readonly view: ClusterView | undefined
  /** Whom not to let in; nobody is revoked without it. */
  readonly revocations: RevocationList | undefined
  readonly clock: Clock
  readonly log: Logger
}

const mostAgents = 20_000
/** Where each agent has a name of its own, it needs one; more are for those that begin anew. */
const mostPerName = 20
/** An agent needs one. */
const maxStreams = 10

/** The port on which agents connect: TLS, and a client certificate or a token for each. */
export class AgentPort {
  readonly #parts: AgentPortParts
  readonly #service: GrpcService
  readonly #check: AgentCheck | undefined
  /** The review of a connection's last token. */
  readonly #reviews = new WeakMap<Socket, Promise<unknown>>()
  readonly #strangers: ConnectionLimit
  readonly #places: FairLimit
  readonly #placed = new WeakSet<Socket>()
  readonly #sparseLog: SparseLog
  #tls: TlsFiles | undefined
  #trust: ClientTrust | undefined
  #server: Server | undefined

  constructor(parts: AgentPortParts) {
    const { config, hub, packets, clock, log } = parts
    this.#parts = parts
    this.#sparseLog = new SparseLog(log, clock)
    const { organization } = config.agents
    this.#places = new FairLimit(mostAgents, organization === undefined ? undefined : mostPerName)
    this.#strangers = strangersAt('agent', this.#sparseLog)
    this.#check = tokenCheckOf(parts)
    this.#service = createGrpcService({
      path: '/AgentService/Connect',
      maxStreams,
      // Offered only if it is served: an agent opens its listeners on this word.
      capabilities: allCapabilities.filter((name) => name !== 'rdial' || config.nodeTraffic.isOn),
      log,
      ...keepaliveOf(config.agents.keepaliveMs, config.agents.keepaliveAnswerMs),
      ...(config.limits && { limits: config.limits }),
      packets,
      authenticate: (request) => this.#authenticate(request),
      onLink: (link, { socket }) =>
        hub.attachAgent(link, describeAgent(link.metadata), this.#peerOf(socket)),
    })
  }

  /** Streams of agents. */
  get streamCount(): number {
    return this.#service.linkCount
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
    this.#trust = this.#trustOf(this.#tls)
    const server = this.#service.secureServer(this.#tls.options)
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
    this.#service.close()
  }

  async #authenticate({ metadata, socket, signal }: LinkRequest) {
    const { serverId, serverCount } = this.#parts.config
    const from = socket.remoteAddress ?? ''
    try {
      this.#checkCertificate(socket)
      await this.#reviewInTurn(metadata, socket, signal)
      describeAgent(metadata)
      this.#takePlace(socket)
      return { metadata: { serverid: serverId, servercount: String(serverCount) } }
    } catch (error) {
      if (!(error instanceof AgentRefused || error instanceof AgentMetadataInvalid)) throw error
      const why = error.detail ?? error.message
      this.#sparseLog.warn(sourceOf(from), { from, why }, 'agent refused')
      return { grpcStatus: 2, message: error.message }
    }
  }

  /** One after another: a review asks the cluster, and whoever causes it has proven nothing yet. */
  async #reviewInTurn(
    metadata: LinkRequest['metadata'],
    socket: Socket,
    signal: AbortSignal,
  ): Promise<void> {
    const check = this.#check
    if (!check) return
    const before = this.#reviews.get(socket) ?? Promise.resolve()
    const review = before.then(() => {
      if (signal.aborted) throw refused('it took too long or was given up')
      return check(metadata, signal)
    })
    this.#reviews.set(
      socket,
      review.catch(() => {}),
    )
    await review
  }

  #takePlace(socket: Socket): void {
    if (this.#placed.has(socket)) return
    const giveWay = new AgentRefused('the connection gave way to newer ones')
    const leave = this.#places.enter(this.#peerOf(socket), () => socket.destroy(giveWay))
    if (!leave) throw refused('too many agents are connected')
    this.#placed.add(socket)
    socket.once('close', leave)
    this.#strangers.release(socket)
  }

  /** Whom connections of an agent count for: its name where each has its own, else where it comes from. */
  #peerOf(socket: Socket): string {
    const { organization } = this.#parts.config.agents
    const holder = organization === undefined ? undefined : this.#trust?.admit(socket)
    return holder?.commonName ?? sourceOf(socket.remoteAddress ?? '')
  }

  #checkCertificate(socket: Socket): void {
    const { organization } = this.#parts.config.agents
    try {
      const holder = this.#trust?.admit(socket)
      if (organization === undefined || holder?.organizations.includes(organization)) return
      throw refused(`the certificate of ${holder?.commonName} does not name ${organization}`)
    } catch (error) {
      throw error instanceof ClientDistrusted ? refused(error.message) : error
    }
  }

  #trustOf(tls: TlsFiles): ClientTrust | undefined {
    const { config, revocations, clock, log } = this.#parts
    if (config.agents.tls.clientCaFile === undefined) return undefined
    return trustIn(tls, {
      revocations,
      needsHolder: config.agents.organization !== undefined,
      clock,
      log,
    })
  }
}

const refused = (detail: string): AgentRefused =>
  new AgentRefused('the agent could not be authenticated', { detail })

function tokenCheckOf({ config, view }: AgentPortParts): AgentCheck | undefined {
  const { tokens, tls } = config.agents
  if (tokens) {
    if (!view) throw new TypeError('agents with tokens need a cluster that reviews them')
    return createTokenCheck({ view, ...tokens })
  }
  if (tls.clientCaFile === undefined) throw new TypeError('agents would need no credential at all')
  return undefined
}
