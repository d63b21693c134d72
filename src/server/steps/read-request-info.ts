import type { Exchange } from '../exchange.ts'
import { isLongRunning, parseRequestInfo } from '../request-info.ts'

/** Understands method and URL, once for all who come after. */
export function readRequestInfo(exchange: Exchange): void {
  const { method, url } = exchange.request
  exchange.info = parseRequestInfo(method ?? '', url ?? '')
  exchange.longRunning = exchange.upgrade !== undefined || isLongRunning(exchange.info)
}
