import type { AgentSession } from '../agent-session.ts'

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
export function leastLoaded(
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
