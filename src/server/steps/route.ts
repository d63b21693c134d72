import { ApiError, badRequest, methodNotAllowed, notServed } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import type { LeavingClient, PipelineParts, RoutedRequest } from '../pipeline-parts.ts'
import type { ParsedRequest } from '../request-info.ts'

/** Hands the request to whoever answers it. */
export function route(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { request, response, info, authentication } = exchange
  const routed: RoutedRequest = { request, info, authentication, audit: exchange }
  if (exchange.upgrade) return leaveHttp(exchange, routed, parts)
  if (!info.isResourceRequest) return parts.paths(routed, response, exchange.signal)
  if (info.subresource !== 'proxy') checkShape(info, request.method ?? '')
  return parts.resources(routed, response, exchange.signal)
}

const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** What the authorizer was asked about must be all that the URL and the method say. */
function checkShape(info: ParsedRequest, method: string): void {
  if (info.rest !== '') throw notServed()
  if (!methods.has(method)) throw methodNotAllowed()
  if (info.verb === 'watch' && method !== 'GET') throw methodNotAllowed()
}

function leaveHttp(
  exchange: Exchange,
  routed: RoutedRequest,
  parts: PipelineParts,
): void | Promise<void> {
  const { upgrade, info } = exchange
  if (!upgrade || !parts.upgrade || !info.isResourceRequest || info.subresource === '') {
    throw badRequest(`this path cannot be upgraded to "${exchange.request.headers.upgrade}"`)
  }
  if (info.subresource !== 'proxy' && info.rest !== '') throw notServed()
  const client: LeavingClient = {
    response: exchange.response,
    head: upgrade.head,
    claim: () => {
      if (exchange.claimSocket()) return upgrade.socket
      throw new ApiError('ServiceUnavailable', 'the connection is gone')
    },
  }
  return parts.upgrade(routed, client, exchange.signal)
}
