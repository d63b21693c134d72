import { ApiError, badRequest, parseDuration } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Says that the time for an answer is over, in Kubernetes' words. */
const timeout = (): ApiError =>
  new ApiError('Timeout', 'Timeout: request did not complete within the allotted timeout')

/** How long the request may take: the server's limit, or less if the client asks for less. */
function allowedMs(exchange: Exchange, maximum: number): number {
  if (!exchange.request.url?.includes('timeout')) return maximum
  const asked = exchange.info.query.get('timeout')
  if (asked === null || asked === '') return maximum
  const ms = parseDuration(asked)
  if (ms === undefined)
    throw badRequest(
      `invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(asked)}`,
    )
  return ms > 0 && ms < maximum ? ms : maximum
}

/** Gives every request but the long-running ones a moment at which it ends, answered or not. */
export function startDeadline(exchange: Exchange, parts: PipelineParts): void {
  if (exchange.longRunning) return
  const ms = allowedMs(exchange, parts.requestTimeoutMs)
  exchange.deadline = setTimeout(expire, ms, exchange)
}

function expire(exchange: Exchange): void {
  exchange.expire(timeout())
}
