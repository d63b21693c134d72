import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { refuseProblems } from '../flags/index.ts'
import { connectLink } from '../grpc/index.ts'
import { Activity } from './activity.ts'
import { AgentMetrics } from './agent-metrics.ts'
import { runProgram } from './nodes/dummy-interface.ts'
import { NodeListeners } from './nodes/node-listeners.ts'
import { bindAddressWarning, parseTarget, problemsOfTunnelAgentOptions } from './options/index.ts'
import { connectServer } from './servers/connect-server.ts'
import { ConnectionLoop } from './servers/connection-loop.ts'
import { LeaseCount } from './servers/lease-count.ts'
import { openLeaseView } from './servers/lease-view.ts'
import { serverAddresses } from './servers/server-addresses.ts'
import { AnsweredCount, serverCount } from './servers/server-count.ts'
import { ServerLinks } from './servers/server-links.ts'
import { DialServer } from './targets/dial-server.ts'
import { systemResolve } from './targets/dial-target.ts'
import { Slots } from './targets/slots.ts'
import { RunningAgent, type TunnelAgent, type TunnelAgentParts } from './tunnel-agent.ts'

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
