import type { Duplex } from 'node:stream'
import { type Clock, type Dialer, excerpt, type Logger } from '../../core/index.ts'
import { showHostPort } from '../addresses.ts'
import {
  type ByteStream,
  type Channel,
  duplexOf,
  type IncomingDial,
  join,
  type Link,
} from '../link/index.ts'
import { HolderCheck, type IdentityCheck } from './agent-claims.ts'
import { type AgentIdentity, localIdentity } from './agent-identity.ts'
import { AgentRegistry } from './agent-registry.ts'
import { type AgentDescription, type AgentSession, describeAgent } from './agent-session.ts'
import { DialRouter } from './dial-router.ts'
import type { ServerMetrics } from './metrics.ts'
import type { NodeRoutes } from './node-routes.ts'
import type { StrategyName } from './strategies.ts'

/** Answers the dials of agents. */
export type AgentDialHandler = (dial: IncomingDial, session: AgentSession) => void

/** What a hub is made of. */
export interface TunnelHubParts {
  readonly strategies: readonly StrategyName[]
  /** What agents announce counts by this check, unless it is held under another credential without one. */
  readonly identityCheck?: IdentityCheck | undefined
  /** Which node has an address; without it agents are believed what they announce. */
  readonly routes?: NodeRoutes | undefined
  readonly dialTimeoutMs: number
  readonly onAgentDial: AgentDialHandler
  readonly metrics: ServerMetrics
  readonly clock: Clock
  readonly log: Logger
}

/** What is told of a tunnelled connection when it has ended. */
export interface CarriedFields {
  /** The side that has opened it. */
  readonly from: 'client' | 'agent'
  readonly address: string
  readonly target?: string
}

/** A tunnelled connection. */
interface Carried {
  /** Towards whoever opened it. */
  readonly near: ByteStream
  readonly far: ByteStream
  readonly from: CarriedFields['from']
}

/** More than one read of a socket: what comes does not just pass through any more. */
const fullBytes = 64 * 1024

/** The middle of a tunnel server: agents on one side, whoever dials through them on the other. No sockets of its own. */
export class TunnelHub {
  readonly #parts: TunnelHubParts
  readonly #registry: AgentRegistry
  readonly #router: DialRouter
  readonly #identityCheck: IdentityCheck
  readonly #carried = new Set<Carried>()
  readonly #idle: (() => void)[] = []
  #established = 0

  constructor(parts: TunnelHubParts) {
    const { strategies, routes, metrics, clock, dialTimeoutMs } = parts
    this.#parts = parts
    this.#identityCheck = parts.identityCheck ?? new HolderCheck()
    this.#registry = new AgentRegistry(strategies, { routes })
    this.#router = new DialRouter({
      registry: this.#registry,
      metrics,
      clock,
      timeoutMs: dialTimeoutMs,
      settled: () => this.#lookForRest(),
    })
  }

  /** Dials through agents, for servers in the same process. */
  readonly dialer: Dialer = {
    dial: async (target, signal) => this.#duplexTo(showHostPort(target), signal),
  }

  get isReady(): boolean {
    return this.#registry.isReady
  }

  /** Sessions of agents. */
  get agentCount(): number {
    return this.#registry.sessions.size
  }

  get agentsByStrategy() {
    return this.#registry.sizes()
  }

  get pendingDials(): number {
    return this.#router.pending
  }

  /** Tunnelled connections, in both directions. */
  get established(): number {
    return this.#established
  }

  /** Connections whose bytes from that side wait, because they do not leave as fast. */
  fullFrom(side: CarriedFields['from']): number {
    let count = 0
    for (const { near, far, from } of this.#carried) {
      // What a target sends to a node came by no stream.
      const stream = from === side ? far : from === 'client' ? near : undefined
      if (stream && stream.backlog > fullBytes) count++
    }
    return count
  }

  /** Takes an agent's link until it ends; throws AgentMetadataInvalid if the agent does not say who it is. */
  attachAgent(
    link: Link,
    description: AgentDescription = describeAgent(link.metadata),
    by: { readonly peer?: string; readonly identity?: AgentIdentity } = {},
  ): void {
    const { onAgentDial, metrics } = this.#parts
    const { agentId, identifiers } = description
    const { peer = agentId, identity = localIdentity(agentId) } = by
    const session: AgentSession = { agentId, identifiers, identity, link, peer }
    const log = this.#parts.log.child({ agentId, ...identity.fields })
    link.start({
      dial: (dial) => onAgentDial(dial, session),
      drain: () => log.info({}, 'agent drains'),
    })
    const release = this.#identityCheck.admit({
      identity,
      identifiers,
      log,
      changed: (accepted) => this.#registry.change(session, accepted),
    })
    this.#registry.add(session)
    log.info({ capabilities: [...link.capabilities], agents: this.agentCount }, 'agent connected')
    void link.ended.then(({ error }) => {
      this.#registry.remove(session)
      release()
      if (error) metrics.streamBroke('from_agent')
      log.info({ ...(error && { err: error }), agents: this.agentCount }, 'agent gone')
    })
  }

  /** Opens a connection through an agent; its `start` has to be called in the same tick. */
  open(address: string, signal: AbortSignal): Promise<Channel> {
    return this.#router.open(address, signal)
  }

  /** Joins the two sides of a tunnelled connection and counts it until it ends. */
  async carry(near: ByteStream, far: ByteStream, fields: CarriedFields): Promise<void> {
    const { clock, log } = this.#parts
    const begun = clock.monotonic()
    const carried = { near, far, from: fields.from }
    this.#carried.add(carried)
    this.#opened()
    const { bytesFromA, bytesFromB, endedBy, error } = await join(near, far)
    this.#carried.delete(carried)
    this.#closed(begun)
    log.debug(
      {
        ...fields,
        address: excerpt(fields.address),
        bytesForth: bytesFromA,
        bytesBack: bytesFromB,
        endedBy,
        durationMs: Math.round(clock.monotonic() - begun),
        ...(error && { err: error }),
      },
      'connection closed',
    )
  }

  /** Tells agents that we go soon, and resolves when neither a connection nor a dial is left. */
  async drain(): Promise<void> {
    for (const { link } of this.#registry.sessions) {
      // A Go agent knows no such packet from a server.
      if (link.capabilities.size > 0) link.sendDrain()
    }
    if (this.#isIdle) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Ends every agent's link. */
  async close(): Promise<void> {
    const links = [...this.#registry.sessions].map(({ link }) => link)
    for (const link of links) link.close()
    await Promise.all(links.map((link) => link.ended))
  }

  async #duplexTo(address: string, signal: AbortSignal): Promise<Duplex> {
    const channel = await this.open(address, signal)
    const duplex = duplexOf(channel)
    const begun = this.#parts.clock.monotonic()
    this.#opened()
    duplex.once('close', () => this.#closed(begun))
    return duplex
  }

  #opened(): void {
    this.#established++
  }

  #closed(begun: number): void {
    const { clock, metrics } = this.#parts
    metrics.connectionDuration.observe((clock.monotonic() - begun) / 1_000)
    this.#established--
    this.#lookForRest()
  }

  get #isIdle(): boolean {
    return this.#established === 0 && this.pendingDials === 0
  }

  /** A dial that has been answered counts as a connection a moment later. */
  #lookForRest(): void {
    if (this.#idle.length === 0) return
    setImmediate(() => {
      if (this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve()
    })
  }
}
