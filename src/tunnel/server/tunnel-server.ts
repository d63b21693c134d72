import {
  aborted,
  type Clock,
  type ClusterView,
  type Component,
  type Dialer,
  type Logger,
  MetricsRegistry,
  neverFails,
  withinTime,
} from '../../core/index.ts'
import type { Link } from '../link/index.ts'
import type { HttpEndpoint } from '../ports/http-endpoint.ts'
import { NodeCheck } from './agent-claims.ts'
import { AgentPort } from './agent-port.ts'
import type { AgentDescription } from './agent-session.ts'
import type { RevocationList } from './client-trust.ts'
import type { TunnelServerConfig } from './config.ts'
import { adminEndpoint, healthEndpoint } from './endpoints.ts'
import { FrontEndPort } from './frontend-port.ts'
import { TunnelHub } from './hub.ts'
import { ServerLease } from './lease.ts'
import { ServerMetrics } from './metrics.ts'
import { NodeRoutes } from './node-routes.ts'
import { NodeTraffic } from './reverse/node-traffic.ts'

/** What a tunnel server is made of. */
export interface TunnelServerParts {
  readonly config: TunnelServerConfig
  /** The cluster that reviews tokens, keeps leases and knows nodes; needed for these only. */
  readonly view?: ClusterView
  /** Whose certificates are not believed on any port, though their CA is; nobody's without it. */
  readonly revocations?: RevocationList
  /** Where metrics go that somebody else shows; its own page without it. */
  readonly metrics?: MetricsRegistry
  readonly clock: Clock
  readonly log: Logger
}

/** What listens where, by purpose. */
export interface ListeningPlaces {
  readonly agents?: string
  readonly frontEnd?: string
  readonly health?: string
  readonly admin?: string
}

/** A tunnel server, on its own or inside another one. */
export interface TunnelServer extends Component {
  /** Dials through agents, for servers in the same process. */
  readonly dialer: Dialer
  /** Whether an agent is connected. */
  readonly isReady: boolean
  /** Takes an agent's link that came some other way than through the agent port; its metadata describe it unless told. */
  attachAgent(link: Link, description?: AgentDescription): void
  /** What listens where; only after `start`. */
  readonly listening: ListeningPlaces
  /** The ports of TCP listeners; 0 for those that are not open. */
  readonly ports: {
    readonly agents: number
    readonly frontEnd: number
    readonly health: number
    readonly admin: number
  }
  /** How much is going on; all zero once it has stopped. */
  readonly load: {
    readonly agents: number
    readonly pendingDials: number
    readonly connections: number
    readonly frontEndClients: number
  }
}

/** A tunnel server that does not listen yet. */
export function createTunnelServer(parts: TunnelServerParts): TunnelServer {
  return new ComposedTunnelServer(parts)
}

/** What decides which addresses an agent has; nothing if agents are believed what they announce. */
function identityCheckOf({ config, view, clock, log }: TunnelServerParts) {
  if (config.agentIdentityCheck === 'none') return undefined
  if (!view) throw new TypeError('the identity check needs a cluster')
  const routes = new NodeRoutes({ view, clock, log })
  return { routes, identityCheck: new NodeCheck(view, routes) }
}

class ComposedTunnelServer implements TunnelServer {
  readonly name = 'tunnel-server'
  readonly failed = neverFails()
  readonly #parts: TunnelServerParts
  readonly #hub: TunnelHub
  readonly #routes: NodeRoutes | undefined
  readonly #agentPort: AgentPort | undefined
  readonly #frontEnd: FrontEndPort | undefined
  readonly #health: HttpEndpoint | undefined
  readonly #admin: HttpEndpoint | undefined
  readonly #lease: ServerLease | undefined
  #listening: ListeningPlaces = {}
  #isStopping = false

  constructor(parts: TunnelServerParts) {
    const { config, clock, log, view, revocations } = parts
    const registry = parts.metrics ?? new MetricsRegistry()
    const metrics = new ServerMetrics(registry)
    this.#parts = parts
    const nodeTraffic = new NodeTraffic({
      ...config.nodeTraffic,
      carry: (near, far, fields) => this.#hub.carry(near, far, fields),
      clock,
      log,
    })
    const checked = identityCheckOf(parts)
    this.#routes = checked?.routes
    this.#hub = new TunnelHub({
      strategies: config.strategies,
      ...checked,
      dialTimeoutMs: config.dialTimeoutMs,
      onAgentDial: (dial, session) => nodeTraffic.handle(dial, session),
      metrics,
      clock,
      log,
    })
    const { agents, frontEnd, health, admin, leases } = config
    const hub = this.#hub
    if (agents) {
      const packets = metrics.tally('agent')
      this.#agentPort = new AgentPort({
        config: { ...config, agents },
        hub,
        packets,
        view,
        revocations,
        clock,
        log,
      })
    }
    if (frontEnd) {
      this.#frontEnd = new FrontEndPort({
        config: { ...config, frontEnd },
        hub,
        metrics,
        revocations,
        clock,
        log,
      })
    }
    if (health) this.#health = healthEndpoint(() => this.#readiness, registry)
    if (admin) this.#admin = adminEndpoint(admin.isProfiling, registry)
    if (leases) {
      if (!view) throw new TypeError('leases need a cluster to keep them')
      const { namespace, labels } = leases
      const { serverId } = config
      this.#lease = new ServerLease({ view, serverId, namespace, labels, metrics, clock, log })
    }
    this.#observe(metrics)
  }

  get dialer(): Dialer {
    return this.#hub.dialer
  }

  get isReady(): boolean {
    return this.#hub.isReady
  }

  get #readiness() {
    if (this.#isStopping) return 'stopping' as const
    return this.isReady ? ('ready' as const) : ('no-agent' as const)
  }

  get listening(): ListeningPlaces {
    return this.#listening
  }

  get ports(): TunnelServer['ports'] {
    return {
      agents: this.#agentPort?.port ?? 0,
      frontEnd: this.#frontEnd?.port ?? 0,
      health: this.#health?.port ?? 0,
      admin: this.#admin?.port ?? 0,
    }
  }

  get load(): TunnelServer['load'] {
    return {
      agents: this.#hub.agentCount,
      pendingDials: this.#hub.pendingDials,
      connections: this.#hub.established,
      frontEndClients: this.#frontEnd?.count ?? 0,
    }
  }

  attachAgent(link: Link, description?: AgentDescription): void {
    this.#hub.attachAgent(link, description)
  }

  async start(): Promise<void> {
    const { config, log } = this.#parts
    this.#routes?.start()
    const places: { -readonly [Name in keyof ListeningPlaces]: string } = {}
    if (this.#health && config.health) places.health = await this.#health.listen(config.health)
    if (this.#admin && config.admin) places.admin = await this.#admin.listen(config.admin)
    if (this.#agentPort) places.agents = await this.#agentPort.open()
    if (this.#frontEnd) places.frontEnd = await this.#frontEnd.open()
    this.#lease?.start()
    this.#listening = places
    log.info({ ...places, serverId: config.serverId }, 'tunnel server listens')
  }

  async stop(deadline: AbortSignal): Promise<void> {
    const { config, log } = this.#parts
    const { drainMs } = config
    if (!this.#isStopping) log.info({ ...this.load, drainMs }, 'tunnel server stops')
    this.#isStopping = true
    // The cluster that keeps the Lease may be stopping too, and must not cost the others their time.
    const leaseIsGone = this.#lease?.stop(deadline)
    this.#frontEnd?.stopAccepting()
    this.#agentPort?.stopAccepting()
    if (drainMs > 0)
      await withinTime(drainMs, deadline, (ended) =>
        Promise.race([this.#hub.drain(), aborted(ended)]),
      )
    this.#frontEnd?.close()
    this.#routes?.stop()
    await this.#hub.close()
    this.#agentPort?.close()
    await Promise.all([leaseIsGone, this.#health?.close(), this.#admin?.close()])
  }

  #observe(metrics: ServerMetrics): void {
    const hub = this.#hub
    const isHttp = this.#parts.config.frontEnd?.mode === 'http-connect'
    const clients = (): number => this.#frontEnd?.count ?? 0
    metrics.observe({
      proxyStreams: () => (isHttp ? 0 : clients()),
      agentStreams: () => this.#agentPort?.streamCount ?? hub.agentCount,
      httpConnections: () => (isHttp ? clients() : 0),
      agents: () => hub.agentCount,
      agentsByStrategy: () => hub.agentsByStrategy,
      pendingDials: () => hub.pendingDials,
      establishedConnections: () => hub.established,
      fullFromClients: () => hub.fullFrom('client'),
      fullFromAgents: () => hub.fullFrom('agent'),
    })
  }
}
