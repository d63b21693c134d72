import type { AgentSession } from '../agent-session.ts'
import { leastLoaded, type Strategy } from './strategy.ts'

/** The least busy of all agents. */
export class LeastLoadedAgent implements Strategy {
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
