import type { AgentSession } from '../agent-session.ts'
import { leastLoaded, type Strategy } from './strategy.ts'

/** Any agent that `concerns` this strategy, by chance; of its sessions the least busy one. */
export class RandomAgent implements Strategy {
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
