import {
  type Clock,
  type ClusterView,
  type Component,
  type Logger,
  neverFails,
} from '../../core/index.ts'
import type { Activity } from './activity.ts'
import { AgentEndpoints } from './agent-endpoints.ts'
import type { AgentMetrics } from './agent-metrics.ts'
import { settled } from './drain.ts'
import type { NodeListeners } from './nodes/node-listeners.ts'
import type { TunnelAgentOptions } from './options/index.ts'
import type { Check } from './readiness.ts'
import type { Connect } from './servers/connect-server.ts'
import type { ConnectionLoop } from './servers/connection-loop.ts'
import type { LeaseCount } from './servers/lease-count.ts'
import type { ServerLinks } from './servers/server-links.ts'
import type { Resolve } from './targets/dial-target.ts'

/** What an agent is made from. */
export interface TunnelAgentParts {
  readonly options: TunnelAgentOptions
  readonly clock: Clock
  readonly log: Logger
  /** Whether this process may make interfaces. */
  readonly isRoot: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  /** The cluster whose Leases are counted; found by `--kubeconfig` or the Pod's environment unless given. */
  readonly view?: ClusterView
  /** Opens links; real ones unless given. */
  readonly connect?: Connect
  /** Resolves names; by the operating system unless given. */
  readonly resolve?: Resolve
}

/** An agent: it links this network to the tunnel servers until it is stopped. */
export interface TunnelAgent extends Component {
  readonly agentId: string
  /** The ports of health and admin, once started. */
  readonly ports: { readonly health: number; readonly admin: number }
  /** The ids of the servers that are connected now. */
  readonly servers: readonly string[]
  /** The local ports that are open, and the addresses in the control plane that they stand for. */
  readonly nodePorts: readonly { readonly port: number; readonly address: string }[]
  /** Connections that are open or in the making, in both directions. */
  readonly activeConnections: number
  /** Resolves as soon as a server is connected; rejects with the signal's reason. */
  connected(signal: AbortSignal): Promise<void>
}

/** The working parts of an agent, put together. */
export interface AgentWorks {
  readonly agentId: string
  readonly options: TunnelAgentOptions
  readonly activity: Activity
  readonly metrics: AgentMetrics
  readonly links: ServerLinks
  readonly loop: ConnectionLoop
  readonly listeners: NodeListeners | undefined
  readonly leases: LeaseCount | undefined
  readonly log: Logger
}

/** Runs the parts of an agent in the right order. */
export class RunningAgent implements TunnelAgent {
  readonly name = 'tunnel agent'
  readonly failed = neverFails()
  readonly #works: AgentWorks
  readonly #endpoints: AgentEndpoints
  readonly #stopLoop = new AbortController()
  #looping: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  constructor(works: AgentWorks) {
    this.#works = works
    const { options, links, listeners, metrics } = works
    const checks: Check[] = [
      { name: 'ping', problem: () => undefined },
      {
        name: 'server-connected',
        problem: () => (links.size > 0 ? undefined : 'no servers connected'),
      },
      ...(listeners?.checks ?? []),
    ]
    this.#endpoints = new AgentEndpoints({
      checks,
      metrics: metrics.registry,
      health: { host: options.healthServerHost, port: options.healthServerPort },
      admin: { host: options.adminBindAddress, port: options.adminServerPort },
      isProfiling: options.enableProfiling,
    })
  }

  get agentId(): string {
    return this.#works.agentId
  }

  get ports(): { readonly health: number; readonly admin: number } {
    return { health: this.#endpoints.healthPort, admin: this.#endpoints.adminPort }
  }

  get servers(): readonly string[] {
    return this.#works.links.entries().map(([serverId]) => serverId)
  }

  get nodePorts(): readonly { readonly port: number; readonly address: string }[] {
    return this.#works.listeners?.open ?? []
  }

  get activeConnections(): number {
    return this.#works.activity.count
  }

  /** Waits neither for a server nor for a cluster: it may be there before either. */
  async start(): Promise<void> {
    const { leases, listeners, loop } = this.#works
    await this.#endpoints.start()
    leases?.start()
    listeners?.start()
    this.#looping = loop.run(this.#stopLoop.signal)
  }

  connected(signal: AbortSignal): Promise<void> {
    return this.#works.links.anyConnected(signal)
  }

  stop(deadline: AbortSignal): Promise<void> {
    this.#stopping ??= this.#stop(deadline)
    return this.#stopping
  }

  async #stop(deadline: AbortSignal): Promise<void> {
    const { activity, leases, links, listeners, log } = this.#works
    this.#stopLoop.abort(new Error('the agent is stopping'))
    links.sendDrain()
    if (links.size > 0) {
      log.info({ connections: activity.count }, 'draining: no new links, open connections go on')
      await settled(activity, deadline)
    }
    await this.#looping
    await listeners?.stop()
    await links.close()
    await leases?.stop()
    await this.#endpoints.stop()
  }
}
