import { networkOf, parseIp, parseIpRange } from '../addresses.ts'
import type { AgentSession } from './agent-session.ts'

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

/** The least busy agent that names the dialled host among its identifiers. */
class ByHost implements Strategy {
  readonly #byHost = new Map<string, Set<AgentSession>>()
  readonly #agents = new Set<AgentSession>()

  get size(): number {
    return this.#agents.size
  }

  add(session: AgentSession): void {
    const { hosts } = session.identifiers
    if (hosts.length > 0) this.#agents.add(session)
    for (const host of hosts) {
      const sessions = this.#byHost.get(host)
      if (sessions) sessions.add(session)
      else this.#byHost.set(host, new Set([session]))
    }
  }

  remove(session: AgentSession): void {
    this.#agents.delete(session)
    for (const host of session.identifiers.hosts) {
      const sessions = this.#byHost.get(host)
      sessions?.delete(session)
      if (sessions?.size === 0) this.#byHost.delete(host)
    }
  }

  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    return leastLoaded(this.#byHost.get(host) ?? [], isFit)
  }
}

type Networks = Map<bigint, Set<AgentSession>>

/** The least busy agent with the narrowest range around the dialled address. */
class ByRange implements Strategy {
  /** By address width, then by prefix length: few maps to look into, however many agents there are. */
  readonly #byWidth = { 32: new Map<number, Networks>(), 128: new Map<number, Networks>() }
  readonly #agents = new Set<AgentSession>()

  get size(): number {
    return this.#agents.size
  }

  add(session: AgentSession): void {
    for (const range of rangesOf(session)) {
      this.#agents.add(session)
      const byLength = this.#byWidth[range.width]
      const networks: Networks = byLength.get(range.bits) ?? new Map()
      byLength.set(range.bits, networks)
      const sessions = networks.get(range.value) ?? new Set()
      networks.set(range.value, sessions.add(session))
    }
  }

  remove(session: AgentSession): void {
    this.#agents.delete(session)
    for (const range of rangesOf(session)) {
      const byLength = this.#byWidth[range.width]
      const networks = byLength.get(range.bits)
      const sessions = networks?.get(range.value)
      sessions?.delete(session)
      if (sessions?.size === 0) networks?.delete(range.value)
      if (networks?.size === 0) byLength.delete(range.bits)
    }
  }

  pick(host: string, isFit: (session: AgentSession) => boolean): AgentSession | undefined {
    const ip = parseIp(host)
    if (!ip) return undefined
    const byLength = this.#byWidth[ip.width]
    for (const bits of [...byLength.keys()].toSorted((a, b) => b - a)) {
      const sessions = byLength.get(bits)?.get(networkOf(ip, bits))
      const chosen = leastLoaded(sessions ?? [], isFit)
      if (chosen) return chosen
    }
    return undefined
  }
}

const rangesOf = ({ identifiers }: AgentSession) =>
  identifiers.cidrs.flatMap((text) => parseIpRange(text) ?? [])

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
    const known = this.#byId.get(session.agentId)
    if (known) {
      known.add(session)
      return
    }
    const sessions = new Set([session])
    this.#byId.set(session.agentId, sessions)
    this.#agents.push(sessions)
  }

  remove(session: AgentSession): void {
    const sessions = this.#byId.get(session.agentId)
    if (!sessions?.delete(session) || sessions.size > 0) return
    this.#byId.delete(session.agentId)
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

/** Makes a strategy by its name; `random` gives numbers from 0 to below 1. */
export function createStrategy(name: StrategyName, random: () => number): Strategy {
  switch (name) {
    case 'default':
      return new RandomAgent(() => true, random)
    case 'defaultRoute':
      return new RandomAgent((session) => session.identifiers.isDefaultRoute, random)
    case 'destHost':
      return new ByHost()
    case 'cidr':
      return new ByRange()
    case 'least-loaded':
      return new LeastLoadedAgent()
  }
}
