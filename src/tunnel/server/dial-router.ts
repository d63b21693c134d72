import type { Clock } from '../../core/index.ts'
import { parseHostPort } from '../addresses.ts'
import { type Channel, DialFailed, type DialFailureReason } from '../link/index.ts'
import { type AgentRegistry, NoAgentAvailable } from './agent-registry.ts'
import type { AgentSession } from './agent-session.ts'
import type { CountedDialFailure, ServerMetrics } from './metrics.ts'

/** What a router of dials is made of. */
export interface DialRouterParts {
  readonly registry: AgentRegistry
  readonly metrics: ServerMetrics
  readonly clock: Clock
  /** For a dial as a whole, however many agents are tried. */
  readonly timeoutMs: number
  /** A dial has come to its end, one way or the other. */
  readonly settled?: () => void
  /** For one agent while there is another to try; agents themselves give a target 5 s. */
  readonly attemptMs?: number
}

const defaultAttemptMs = 10_000

const countedAs: Readonly<Record<DialFailureReason, CountedDialFailure>> = {
  'refused-by-peer': 'error_response',
  'link-lost': 'backend_close',
  timeout: 'backend_dial_timeout',
  cancelled: 'frontend_close',
}

/** The host of an address as strategies compare it: without port and brackets, lower case. */
export function hostOf(address: string): string {
  const parsed = parseHostPort(address)
  if (parsed) return parsed.host
  const colon = address.lastIndexOf(':')
  const host = colon < 0 ? address : address.slice(0, colon)
  return host.replace(/^\[|\]$/g, '').toLowerCase()
}

/** A target that refused one agent would refuse the next; an agent that is gone or stuck answers nobody. */
const mayTryAnother = ({ reason }: DialFailed): boolean =>
  reason === 'link-lost' || reason === 'timeout'

/** Finds an agent for each dial, and another one if the first is lost or stuck before it has answered. */
export class DialRouter {
  readonly #parts: DialRouterParts
  #pending = 0

  constructor(parts: DialRouterParts) {
    this.#parts = parts
  }

  /** Dials that have no answer yet. */
  get pending(): number {
    return this.#pending
  }

  /** Opens a connection to `address`; rejects with NoAgentAvailable or DialFailed. */
  async open(address: string, signal: AbortSignal): Promise<Channel> {
    const { clock, metrics } = this.#parts
    const begun = clock.monotonic()
    this.#pending++
    try {
      const channel = await this.#tryAgents(address, signal, begun)
      metrics.dialDuration.observe((clock.monotonic() - begun) / 1_000)
      return channel
    } catch (error) {
      if (error instanceof NoAgentAvailable) metrics.dialFailed('no_agent')
      throw error
    } finally {
      this.#pending--
      this.#parts.settled?.()
    }
  }

  async #tryAgents(address: string, signal: AbortSignal, begun: number): Promise<Channel> {
    const { registry, clock, timeoutMs, attemptMs = defaultAttemptMs } = this.#parts
    const host = hostOf(address)
    const tried = new Set<AgentSession>()
    for (let next = registry.pick(host, tried); next; ) {
      const session = next
      tried.add(session)
      const leftMs = Math.max(1, timeoutMs - (clock.monotonic() - begun))
      const hasOther = registry.pick(host, tried) !== undefined
      const deadlineMs = hasOther ? Math.min(leftMs, attemptMs) : leftMs
      try {
        const channel = await session.link.dial(address, { signal, deadlineMs })
        registry.answered(session, true)
        return channel
      } catch (error) {
        if (!(error instanceof DialFailed)) throw error
        this.#failed(session, error)
        next = registry.pick(host, tried)
        const isTimeLeft = error.reason === 'link-lost' || deadlineMs < leftMs
        if (!next || !mayTryAnother(error) || !isTimeLeft) throw error
      }
    }
    throw new NoAgentAvailable()
  }

  #failed(session: AgentSession, { reason }: DialFailed): void {
    const { registry, metrics } = this.#parts
    metrics.dialFailed(countedAs[reason])
    if (reason === 'timeout') registry.answered(session, false)
    else if (reason === 'refused-by-peer') registry.answered(session, true)
  }
}
