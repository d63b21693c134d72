import type { Authentication } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import { isPending } from '../pending.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Lets those who may act as somebody else; both identities stay known. */
export function impersonate(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { request, authentication, info, signal } = exchange
  const action = info.isResourceRequest
    ? { verb: info.verb, resource: info }
    : { verb: info.verb, path: info.path }
  const acting = parts.impersonate(request, authentication, action, signal)
  if (isPending(acting)) return acting.then((result) => actAs(exchange, result))
  actAs(exchange, acting)
  return undefined
}

function actAs(exchange: Exchange, acting: Authentication): void {
  if (acting === exchange.authentication) return
  exchange.impersonator = exchange.authentication
  exchange.authentication = acting
}
