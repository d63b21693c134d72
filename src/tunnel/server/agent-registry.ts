import { SallyportError } from '../../core/index.ts'
import type { AgentIdentifiers, AgentSession } from './agent-session.ts'
import {
  createStrategy,
  type Strategy,
  type StrategyName,
  type StrategyParts,
} from './strategies.ts'

/** Knows every connected agent, and chooses one for a dial. */
export class AgentRegistry {
  readonly #sessions = new Set<AgentSession>()
  readonly #strategies = new Map<StrategyName, Strategy>()
  /** Agents that left a dial unanswered and have answered none since. */
  readonly #unresponsive = new Set<AgentSession>()

  /** The first strategy that finds an agent decides; `random` is for tests. */
  constructor(names: readonly StrategyName[], parts: Partial<StrategyParts> = {}) {
    const all = { random: Math.random, ...parts }
    for (const name of names) this.#strategies.set(name, createStrategy(name, all))
  }

  get sessions(): ReadonlySet<AgentSession> {
    return this.#sessions
  }

  /** Whether the first strategy has an agent, which is what readiness means. */
  get isReady(): boolean {
    const [first] = this.#strategies.values()
    return (first?.size ?? 0) > 0
  }

  /** How many agents each strategy can choose from. */
  sizes(): { readonly strategy: StrategyName; readonly size: number }[] {
    return [...this.#strategies].map(([strategy, { size }]) => ({ strategy, size }))
  }

  add(session: AgentSession): void {
    this.#sessions.add(session)
    for (const strategy of this.#strategies.values()) strategy.add(session)
  }

  /** Other identifiers of an agent count from now on. */
  change(session: AgentSession, identifiers: AgentIdentifiers): void {
    const isKnown = this.#sessions.has(session)
    if (isKnown) for (const strategy of this.#strategies.values()) strategy.remove(session)
    session.identifiers = identifiers
    if (isKnown) for (const strategy of this.#strategies.values()) strategy.add(session)
  }

  remove(session: AgentSession): void {
    this.#sessions.delete(session)
    this.#unresponsive.delete(session)
    for (const strategy of this.#strategies.values()) strategy.remove(session)
  }

  /** Takes note of whether an agent answered a dial in time. */
  answered(session: AgentSession, inTime: boolean): void {
    if (inTime) this.#unresponsive.delete(session)
    else if (this.#sessions.has(session)) this.#unresponsive.add(session)
  }

  /** An agent for a dial to `host`, none of `tried`; one that drains or left a dial unanswered only where no other fits. */
  pick(host: string, tried: ReadonlySet<AgentSession>): AgentSession | undefined {
    for (const strategy of this.#strategies.values()) {
      const chosen =
        strategy.pick(host, (session) => !tried.has(session) && this.#isWell(session)) ??
        strategy.pick(host, (session) => !tried.has(session))
      if (chosen) return chosen
    }
    return undefined
  }

  #isWell(session: AgentSession): boolean {
    return !session.link.isDraining && !this.#unresponsive.has(session)
  }
}

/** No agent is connected that could take a dial. */
export class NoAgentAvailable extends SallyportError {
  readonly code = 'TUNNEL_NO_AGENT'

  constructor() {
    super('No agent available')
  }
}

/** An agent may not connect. The message goes to the agent; why exactly is in `detail`, for the log. */
export class AgentRefused extends SallyportError {
  readonly code = 'TUNNEL_AGENT_REFUSED'
}

/** An agent whose credential nobody could judge: refused at the door, but borne with for a while once it is inside. */
export class AgentUnjudged extends AgentRefused {}

/** A client whose certificate is not, or no longer, to be believed; the message is for the log. */
export class ClientDistrusted extends SallyportError {
  readonly code = 'TUNNEL_CLIENT_DISTRUSTED'
}
