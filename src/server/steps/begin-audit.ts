import type { Exchange } from '../exchange.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Opens the audit record; it is closed when the exchange is over, however that comes about. */
export function beginAudit(exchange: Exchange, parts: PipelineParts): void {
  parts.audit.received(exchange)
  if (exchange.longRunning && exchange.upgrade === undefined) reportStart(exchange, parts)
}

/** Node has no event for "headers are on their way": every path to that leads through `writeHead`. */
function reportStart(exchange: Exchange, parts: PipelineParts): void {
  const { response } = exchange
  const writeHead = response.writeHead.bind(response)
  Object.assign(response, {
    writeHead(...args: Parameters<typeof writeHead>) {
      Object.assign(response, { writeHead })
      const result = writeHead(...args)
      parts.audit.started(exchange)
      return result
    },
  })
}
