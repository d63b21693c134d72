import { withBaseGroup } from '../../authn/index.ts'
import { type Authentication, unauthorized } from '../../core/index.ts'
import type { Exchange } from '../exchange.ts'
import { isPending } from '../pending.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Finds out who asks. No identity, a wrong one and a revoked one are all the same 401. */
export function authenticate(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const found = parts.authenticator.authenticate(exchange.request, exchange.signal)
  if (isPending(found)) return found.then((result) => identify(exchange, parts, result))
  return identify(exchange, parts, found)
}

function identify(
  exchange: Exchange,
  parts: PipelineParts,
  found: Authentication | undefined,
): void | Promise<void> {
  if (found === undefined) throw unauthorized('no credential that we know')
  exchange.authentication = withBaseGroup(found)
  for (const [key, value] of Object.entries(found.auditNotes ?? {})) exchange.annotate(key, value)
  return parts.checkRevocation(exchange.authentication)
}
