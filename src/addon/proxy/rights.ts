import { scopeDecision } from '../../authn/index.ts'
import { denial } from '../../authz/index.ts'
import type { AuthorizedRequest, Decision } from '../../core/index.ts'
import type { ServiceProxyParts } from './service-proxy-parts.ts'

type Rights = Pick<ServiceProxyParts, 'authorizer' | 'impersonate'>

/** The right to act as somebody else is asked for with every verb: it may be for reading only. */
async function decide(
  { request, authentication, info }: AuthorizedRequest,
  verb: string,
  { authorizer, impersonate }: Rights,
  signal: AbortSignal,
): Promise<Decision> {
  const { impersonator, ...acting } = authentication
  if (impersonator)
    await impersonate(request, { ...acting, user: impersonator }, { verb, resource: info }, signal)
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
  for (const verb of verbs) {
    const { allowed } = await decide(asked, verb, rights, signal)
    if (!allowed) return false
  }
  return true
}
