import { SallyportError } from '../../core/index.ts'
import type { Link } from '../link/index.ts'
import type { AgentIdentity } from './agent-identity.ts'

/** What an agent says it can reach. */
export interface AgentIdentifiers {
  /** IP addresses and host names, lower case. */
  readonly hosts: readonly string[]
  readonly cidrs: readonly string[]
  readonly isDefaultRoute: boolean
}

/** Metadata of an agent that breaks the rules; its stream is refused. */
export class AgentMetadataInvalid extends SallyportError {
  readonly code = 'TUNNEL_AGENT_METADATA_INVALID'
}

/** Each is looked up when an agent connects. */
const maxIdentifiers = 100

/** What Go's strconv takes for true. */
const trueWords = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])

/**
 * Reads the query string of the metadata `agentidentifiers`. Types that are not known are passed over,
 * so that newer agents can connect; an encoding that is broken is refused.
 */
export function parseAgentIdentifiers(text: string): AgentIdentifiers {
  const hosts = new Set<string>()
  const cidrs = new Set<string>()
  let defaultRoute: string | undefined
  for (const [type, value] of pairsOf(text)) {
    if (type === 'ipv4' || type === 'ipv6' || type === 'host') hosts.add(value.toLowerCase())
    else if (type === 'cidr') cidrs.add(value)
    else if (type === 'default-route') defaultRoute ??= value
  }
  return {
    hosts: [...hosts],
    cidrs: [...cidrs],
    isDefaultRoute: trueWords.has(defaultRoute ?? ''),
  }
}

function pairsOf(text: string): (readonly [string, string])[] {
  const parts = text.split('&').filter((part) => part !== '')
  if (parts.length > maxIdentifiers)
    throw new AgentMetadataInvalid(`an agent may have ${maxIdentifiers} identifiers, not more`)
  return parts.map((part) => {
    // As in Go since 1.17: a semicolon separates nothing and has no other place here.
    if (part.includes(';')) throw new AgentMetadataInvalid('agentIdentifiers has a semicolon in it')
    const at = part.indexOf('=')
    const name = at < 0 ? part : part.slice(0, at)
    return [decode(name), decode(at < 0 ? '' : part.slice(at + 1))] as const
  })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new AgentMetadataInvalid('agentIdentifiers is not a URL-encoded query', { cause })
  }
}

/** Who an agent says it is. */
export interface AgentDescription {
  readonly agentId: string
  /** What it announces; what of it counts is in its session. */
  readonly identifiers: AgentIdentifiers
}

/** One connected agent. Two sessions of one agentID are two objects, and nothing is ever found by the ID alone. */
export interface AgentSession {
  readonly agentId: string
  /** What counts of what the agent announced. */
  identifiers: AgentIdentifiers
  readonly identity: AgentIdentity
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
  // It is repeated in every log line of the agent.
  if (!/^[\x21-\x7e]{1,256}$/.test(agentId))
    throw new AgentMetadataInvalid('the agent ID must be 1 to 256 printable ASCII characters')
  const given = metadata['agentidentifiers'] ?? []
  if (given.length > 1) {
    throw new AgentMetadataInvalid(
      `expected at most one set of agent identifiers, got ${given.length}`,
    )
  }
  return { agentId, identifiers: parseAgentIdentifiers(given[0] ?? '') }
}
