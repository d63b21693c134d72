import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  type Clock,
  type ClusterView,
  type Component,
  type Logger,
  neverFails,
  pause,
} from '../../core/index.ts'
import { refuseProblems } from '../flags.ts'
import { connectLink } from '../link/index.ts'
import { Activity } from './activity.ts'
import { AgentEndpoints, type Check } from './endpoints.ts'
import { AgentMetrics } from './metrics.ts'
import { runProgram } from './nodes/dummy-interface.ts'
import { NodeListeners } from './nodes/node-listener.ts'
import {
  bindAddressWarning,
  parseTarget,
  problemsOfTunnelAgentOptions,
  type TunnelAgentOptions,
} from './options/index.ts'
import { type Connect, connectServer, requireTrustedCredentials } from './servers/connect-server.ts'
import { ConnectionLoop } from './servers/connection-loop.ts'
import { serverAddresses } from './servers/server-addresses.ts'
import { AnsweredCount, LeaseCount, openLeaseView, serverCount } from './servers/server-count.ts'
import { ServerLinks } from './servers/server-links.ts'
import { DialServer } from './targets/dial-server.ts'
import { type Resolve, systemResolve } from './targets/dial-target.ts'
import { Slots } from './targets/slots.ts'

/** Dials that were on their way when a server heard of the drain arrive within this time. */
const settleMs = 200

/** Resolves when nothing is under way and nothing new has come for a moment, or when `deadline` aborts. */
export async function settled(activity: Activity, deadline: AbortSignal): Promise<void> {
  while (!deadline.aborted) {
    await activity.idle(deadline)
    await pause(settleMs, deadline)
    if (activity.count === 0) return
  }
}

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
interface AgentWorks {
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
class RunningAgent implements TunnelAgent {
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
    const { leases, listeners, loop, options } = this.#works
    await requireTrustedCredentials(options)
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

/** Puts an agent together; throws WrongUsage with everything that is wrong with its options. */
export function createTunnelAgent(parts: TunnelAgentParts): TunnelAgent {
  const { options, clock, log, resolve = systemResolve } = parts
  refuseProblems(problemsOfTunnelAgentOptions(options, existsSync))
  const agentId = options.agentId || randomUUID()
  const activity = new Activity()
  const metrics = new AgentMetrics()
  const slots = new Slots(options.maxConcurrentDials)
  const dials = new DialServer({ slots, resolve, metrics, clock, log, activity })
  const links = new ServerLinks({
    log,
    clock,
    dial: (dial) => dials.serve(dial),
    broke: () => metrics.linkBroke(),
  })
  const leases = createLeaseCount(parts, metrics)
  const answers = new AnsweredCount()
  const count = (): number =>
    serverCount({ answers, source: options.serverCountSource, ...(leases && { leases }) })
  metrics.observe({
    openServerConnections: () => links.size,
    knownServerCount: count,
    openEndpointConnections: () => dials.openConnections,
  })
  const listeners = createListeners(parts, links, activity)
  const loop = createLoop(parts, { agentId, links, metrics, answers, count })
  return new RunningAgent({
    agentId,
    options,
    activity,
    metrics,
    links,
    loop,
    listeners,
    leases,
    log,
  })
}

interface LoopParts {
  readonly agentId: string
  readonly links: ServerLinks
  readonly metrics: AgentMetrics
  readonly answers: AnsweredCount
  readonly count: () => number
}

function createLoop(parts: TunnelAgentParts, inner: LoopParts): ConnectionLoop {
  const { options, clock, log, env, connect = connectLink, resolve = systemResolve } = parts
  const { agentId, links, metrics, answers, count } = inner
  const given = {
    hosts: options.proxyServerHost,
    port: options.proxyServerPort,
    name: options.proxyServerName,
    env,
  }
  const connector = {
    connect,
    files: options,
    agentId,
    agentIdentifiers: options.agentIdentifiers,
    alpn: options.alpnProto,
    keepaliveMs: options.keepaliveTime,
    packets: metrics.packets,
    log,
  }
  return new ConnectionLoop({
    links,
    addresses: () => serverAddresses(given, resolve, log),
    connect: (address, signal) => connectServer(connector, address, signal),
    reached: (server) => answers.heard(server.serverCount),
    serverCount: count,
    syncIntervalMs: options.syncInterval,
    syncIntervalCapMs: options.syncIntervalCap,
    syncForever: options.syncForever,
    clock,
    log,
    random: Math.random,
  })
}

function createLeaseCount(parts: TunnelAgentParts, metrics: AgentMetrics): LeaseCount | undefined {
  const { options, clock, log, env, view } = parts
  if (!options.countServerLeases) return undefined
  const { kubeconfig } = options
  return new LeaseCount({
    view: () => (view ? Promise.resolve(view) : openLeaseView({ kubeconfig, env })),
    namespace: options.leaseNamespace,
    labelSelector: options.leaseLabel ?? options.leaseLabelSelector,
    metrics,
    clock,
    log,
  })
}

/** Local ports only where both a target and an address for it are given. */
function createListeners(
  parts: TunnelAgentParts,
  links: ServerLinks,
  activity: Activity,
): NodeListeners | undefined {
  const { options, clock, log, isRoot } = parts
  const { bindAddress } = options
  const targets = options.target.flatMap((text) => {
    const parsed = parseTarget(text)
    return 'target' in parsed ? [parsed.target] : []
  })
  if (bindAddress === undefined || targets.length === 0) {
    if (targets.length > 0) log.warn({}, 'no local port is opened: --bind-address is missing')
    if (bindAddress !== undefined) log.warn({}, 'no local port is opened: --target is missing')
    return undefined
  }
  const warning = bindAddressWarning(bindAddress)
  if (warning !== undefined) log.warn({ bindAddress }, warning)
  return new NodeListeners({
    targets,
    bindAddress,
    links: () => links.entries().map(([, link]) => link),
    activity,
    clock,
    random: Math.random,
    log,
    ...(options.createInterface && { interfaceMaker: { isRoot, run: runProgram, log } }),
  })
}
