import { networkOf, parseIp, parseIpRange } from '../../addresses/index.ts'
import type { AgentSession } from '../agent-session.ts'
import { leastLoaded, type Strategy } from './strategy.ts'

type Networks = Map<bigint, Set<AgentSession>>

/** The least busy agent with the narrowest range around the dialled address. */
export class ByRange implements Strategy {
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
