import { scopeDecision } from '../../authn/index.ts'
import type { Attributes, Decision } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import { isPending } from '../pending.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Asks whether they may: first the credential's own scope, then the authorizer. */
export function authorize(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const attributes = attributesOf(exchange)
  refuseOutOfScope(exchange, attributes, parts)
  const decision = parts.authorizer.authorize(attributes, exchange.signal)
  if (isPending(decision)) {
    return decision.then((result) => enforce(exchange, attributes, result, parts))
  }
  enforce(exchange, attributes, decision, parts)
  return undefined
}

function attributesOf({ authentication, info }: Exchange): Attributes {
  const { user } = authentication
  if (info.isResourceRequest) return { user, verb: info.verb, resource: info }
  // HEAD tells less than GET, and no role names it.
  return { user, verb: info.verb === 'head' ? 'get' : info.verb, path: info.path }
}

/** Acting as somebody else does not widen what the credential may be used for. */
function refuseOutOfScope(exchange: Exchange, attributes: Attributes, parts: PipelineParts): void {
  const refusal =
    scopeDecision(exchange.authentication, attributes) ??
    (exchange.impersonator && scopeDecision(exchange.impersonator, attributes))
  if (refusal) enforce(exchange, attributes, refusal, parts)
}

function enforce(
  exchange: Exchange,
  attributes: Attributes,
  decision: Decision,
  parts: PipelineParts,
): void {
  exchange.decision = decision
  if (!decision.allowed) throw parts.denial(attributes, decision)
}
