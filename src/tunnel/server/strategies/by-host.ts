import type { AgentSession } from '../agent-session.ts'
import { leastLoaded, type Strategy } from './strategy.ts'

/** The least busy agent that names the dialled host among its identifiers. */
export class ByHost implements Strategy {
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
