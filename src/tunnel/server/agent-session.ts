import type { Link } from '../link/index.ts'
import {
  type AgentIdentifiers,
  AgentMetadataInvalid,
  parseAgentIdentifiers,
} from './agent-identifiers.ts'

/** Who an agent says it is. */
export interface AgentDescription {
  readonly agentId: string
  readonly identifiers: AgentIdentifiers
}

/** One connected agent. Two sessions of one agentID are two objects, and nothing is ever found by the ID alone. */
export interface AgentSession extends AgentDescription {
  readonly link: Link
  /** Whom its connections count for, however many sessions and IDs that one has. */
  readonly peer: string
}

type Metadata = Link['metadata']

/** Reads what an agent says of itself when it connects; throws AgentMetadataInvalid. */
export function describeAgent(metadata: Metadata): AgentDescription {
  const ids = metadata['agentid'] ?? []
  const [agentId] = ids
  if (agentId === undefined || agentId === '' || ids.length !== 1) {
    throw new AgentMetadataInvalid(`expected one agent ID in the context, got ${ids.length}`)
  }
  const given = metadata['agentidentifiers'] ?? []
  if (given.length > 1) {
    throw new AgentMetadataInvalid(
      `expected at most one set of agent identifiers, got ${given.length}`,
    )
  }
  return { agentId, identifiers: parseAgentIdentifiers(given[0] ?? '') }
}
