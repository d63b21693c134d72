import { scopeDecision } from '../../authn/index.ts'
import { denial } from '../../authz/index.ts'
import type { AuthorizedRequest, Decision } from '../../core/index.ts'
import type { ServiceProxyParts } from './service-proxy-parts.ts'

type Rights = Pick<ServiceProxyParts, 'authorizer' | 'impersonate'>

async function decide(
  { authentication, info }: AuthorizedRequest,
  verb: string,
  { authorizer }: Rights,
  signal: AbortSignal,
): Promise<Decision> {
  const attributes = { user: authentication.user, verb, resource: info }
  return scopeDecision(authentication, attributes) ?? authorizer.authorize(attributes, signal)
}

/** A connection that leaves HTTP carries anything in both directions: the right to read is not enough for it. */
export async function requireCreate(
  asked: AuthorizedRequest,
  rights: Rights,
  signal: AbortSignal,
): Promise<void> {
  const decision = await decide(asked, 'create', rights, signal)
  if (decision.allowed) return
  throw denial({ user: asked.authentication.user, verb: 'create', resource: asked.info }, decision)
}

/** Whether a request that was allowed once would be allowed now, the right to act as somebody else included. */
export async function isStillAllowed(
  asked: AuthorizedRequest,
  verbs: readonly string[],
  rights: Rights,
  signal: AbortSignal,
): Promise<boolean> {
  const { impersonator, ...acting } = asked.authentication
  const action = { verb: asked.info.verb, resource: asked.info }
  if (impersonator)
    await rights.impersonate(asked.request, { ...acting, user: impersonator }, action, signal)
  for (const verb of verbs) {
    const { allowed } = await decide(asked, verb, rights, signal)
    if (!allowed) return false
  }
  return true
}
