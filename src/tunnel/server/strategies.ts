import { hostKey, parseIp, parseIpRange, RangeTable } from '../addresses.ts'
import type { AgentSession } from './agent-session.ts'
import type { NodeRoutes } from './node-routes.ts'

/** A way to choose an agent. */
export interface Strategy {
  /** Takes note of an agent if it concerns this strategy. */
  add(session: AgentSession): void
  remove(session: AgentSession): void
  /** An agent for a dial to `host` that `isFit` accepts; `undefined` leaves it to the next strategy. */
  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined
  /** Agents that this strategy can choose from. */
  readonly size: number
}

/** The least busy of some sessions: fewest connections and dials, then fewest bytes waiting. */
function leastLoaded(
  sessions: Iterable<AgentSession>,
  isFit: (session: AgentSession) => boolean,
): AgentSession | undefined {
  let best: AgentSession | undefined
  for (const session of sessions) {
    if (isFit(session) && (!best || isLessLoaded(session, best))) best = session
  }
  return best
}

function isLessLoaded({ link: a }: AgentSession, { link: b }: AgentSession): boolean {
  const difference = a.channelCount + a.pendingDialCount - (b.channelCount + b.pendingDialCount)
  return difference < 0 || (difference === 0 && a.backlog < b.backlog)
}

/** Groups of sessions by a key. */
class SessionGroups {
  readonly #groups = new Map<string, Set<AgentSession>>()

  of(key: string): Iterable<AgentSession> {
    return this.#groups.get(key) ?? []
  }

  add(key: string, session: AgentSession): void {
    this.#groups.set(key, (this.#groups.get(key) ?? new Set()).add(session))
  }

  delete(key: string, session: AgentSession): void {
    const sessions = this.#groups.get(key)
    sessions?.delete(session)
    if (sessions?.size === 0) this.#groups.delete(key)
  }
}

/** The least busy agent that names the dialled host among its identifiers. */
class ByHost implements Strategy {
  readonly #byHost = new SessionGroups()
  readonly #agents = new Set<AgentSession>()

  get size(): number {
    return this.#agents.size
  }

  add(session: AgentSession): void {
    const { hosts } = session.identifiers
    if (hosts.length > 0) this.#agents.add(session)
    for (const host of hosts) this.#byHost.add(hostKey(host), session)
  }

  remove(session: AgentSession): void {
    this.#agents.delete(session)
    for (const host of session.identifiers.hosts) this.#byHost.delete(hostKey(host), session)
  }

  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    return leastLoaded(this.#byHost.of(hostKey(host)), isFit)
  }
}

/** The least busy agent with the narrowest range around the dialled address. */
class ByRange implements Strategy {
  readonly #ranges = new RangeTable<AgentSession>()
  readonly #agents = new Set<AgentSession>()

  get size(): number {
    return this.#agents.size
  }

  add(session: AgentSession): void {
    for (const range of rangesOf(session)) {
      this.#agents.add(session)
      this.#ranges.add(range, session)
    }
  }

  remove(session: AgentSession): void {
    this.#agents.delete(session)
    for (const range of rangesOf(session)) this.#ranges.delete(range, session)
  }

  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    const ip = parseIp(host)
    if (!ip) return undefined
    for (const sessions of this.#ranges.around(ip, ip.width)) {
      const chosen = leastLoaded(sessions, isFit)
      if (chosen) return chosen
    }
    return undefined
  }
}

const rangesOf = ({ identifiers }: AgentSession) =>
  identifiers.cidrs.flatMap((text) => parseIpRange(text) ?? [])

/** The least busy agent of the node that the dialled host belongs to; what agents announce does not matter. */
class ByNode implements Strategy {
  readonly #routes: NodeRoutes
  readonly #byNode = new SessionGroups()
  readonly #agents = new Set<AgentSession>()

  constructor(routes: NodeRoutes) {
    this.#routes = routes
  }

  get size(): number {
    return this.#agents.size
  }

  add(session: AgentSession): void {
    const { nodeName } = session.identity
    if (nodeName === undefined) return
    this.#agents.add(session)
    this.#byNode.add(nodeName, session)
  }

  remove(session: AgentSession): void {
    this.#agents.delete(session)
    if (session.identity.nodeName !== undefined)
      this.#byNode.delete(session.identity.nodeName, session)
  }

  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    // A node proves its own name by its credential alone, before there is a Node object.
    const isName = parseIp(host) === undefined
    const named = isName ? leastLoaded(this.#byNode.of(hostKey(host)), isFit) : undefined
    if (named) return named
    const node = this.#routes.nodeOf(host)
    return node === undefined ? undefined : leastLoaded(this.#byNode.of(node), isFit)
  }
}

/** The least busy of all agents. */
class LeastLoadedAgent implements Strategy {
  readonly #sessions = new Set<AgentSession>()

  get size(): number {
    return this.#sessions.size
  }

  add(session: AgentSession): void {
    this.#sessions.add(session)
  }

  remove(session: AgentSession): void {
    this.#sessions.delete(session)
  }

  pick(_host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    return leastLoaded(this.#sessions, isFit)
  }
}

/** An agentID counts only together with the credential behind it: two agents may choose the same one. */
const idOf = ({ agentId, identity }: AgentSession): string => `${identity.key}\n${agentId}`

/** Any agent that `concerns` this strategy, by chance; of its sessions the least busy one. */
class RandomAgent implements Strategy {
  readonly #concerns: (session: AgentSession) => boolean
  readonly #random: () => number
  readonly #byId = new Map<string, Set<AgentSession>>()
  /** The sessions of each agent in a row, to choose one by its place. */
  #agents: Set<AgentSession>[] = []

  constructor(concerns: (session: AgentSession) => boolean, random: () => number) {
    this.#concerns = concerns
    this.#random = random
  }

  get size(): number {
    return this.#agents.length
  }

  add(session: AgentSession): void {
    if (!this.#concerns(session)) return
    const known = this.#byId.get(idOf(session))
    if (known) {
      known.add(session)
      return
    }
    const sessions = new Set([session])
    this.#byId.set(idOf(session), sessions)
    this.#agents.push(sessions)
  }

  remove(session: AgentSession): void {
    const sessions = this.#byId.get(idOf(session))
    if (!sessions?.delete(session) || sessions.size > 0) return
    this.#byId.delete(idOf(session))
    this.#agents = this.#agents.filter((each) => each !== sessions)
  }

  pick(_host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    const count = this.#agents.length
    const start = Math.floor(this.#random() * count)
    const chosen = leastLoaded(this.#agents[start] ?? [], isFit)
    if (chosen || count < 2) return chosen
    const others = this.#agents.flatMap((sessions) => leastLoaded(sessions, isFit) ?? [])
    return others[Math.floor(this.#random() * others.length)]
  }
}

/** The strategies by the names that `--proxy-strategies` takes; the last two are ours. */
export const strategyNames = [
  'default',
  'destHost',
  'defaultRoute',
  'cidr',
  'least-loaded',
] as const

/** The name of a strategy. */
export type StrategyName = (typeof strategyNames)[number]

/** What strategies need beside the agents. */
export interface StrategyParts {
  /** Gives numbers from 0 to below 1. */
  readonly random: () => number
  /** Which node has an address; without it agents are believed what they announce. */
  readonly routes?: NodeRoutes | undefined
}

/** Makes a strategy by its name. */
export function createStrategy(name: StrategyName, { random, routes }: StrategyParts): Strategy {
  switch (name) {
    case 'default':
      return new RandomAgent(() => true, random)
    case 'defaultRoute':
      return new RandomAgent((session) => session.identifiers.isDefaultRoute, random)
    case 'destHost':
      return routes ? new ByNode(routes) : new ByHost()
    case 'cidr':
      return routes ? new ByNode(routes) : new ByRange()
    case 'least-loaded':
      return new LeastLoadedAgent()
  }
}
