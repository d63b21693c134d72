import type { Exchange } from '../exchange.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Waits for a place among the requests under way; it is given back when the exchange is over. */
export function admit(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const ticket = parts.fairness.ticketFor(exchange)
  if (ticket === undefined) return undefined
  exchange.ticket = ticket
  return parts.fairness.admit(ticket)
}
