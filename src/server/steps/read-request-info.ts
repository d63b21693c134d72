import type { Exchange } from '../exchange.ts'
import { isLongRunning, parseRequestInfo } from '../request-info.ts'

/** As the proposal of discovery spells the way to cluster-info. */
const doubledSlash = /^\/(?=\/api\/v1\/namespaces\/kube-public\/configmaps\/cluster-info(?:\?|$))/

/** Understands method and URL, once for all who come after. */
export function readRequestInfo(exchange: Exchange): void {
  const { request } = exchange
  const { method = '', url = '' } = request
  if (url.startsWith('//')) request.url = url.replace(doubledSlash, '')
  exchange.info = parseRequestInfo(method, request.url ?? '')
  exchange.longRunning = exchange.upgrade !== undefined || isLongRunning(exchange.info)
}
