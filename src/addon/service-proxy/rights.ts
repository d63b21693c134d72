import { scopeDecision } from '../../authn/index.ts'
import { denial } from '../../authz/index.ts'
import {
  type Authentication,
  type AuthorizedRequest,
  type Decision,
  hasReason,
} from '../../core/index.ts'
import type { ServiceProxyParts } from './dependencies.ts'

type Rights = Pick<ServiceProxyParts, 'authorizer' | 'impersonate'>

/** Why somebody who was let in must go. */
export type LostRight = 'revoked' | 'not-authorized'

/** Who has proved an identity, whether or not they act as somebody else then. */
function provenBy({ impersonator, ...acting }: Authentication): Authentication {
  return impersonator ? { ...acting, user: impersonator } : acting
}

/** The right to act as somebody else is asked for with every verb: it may be for reading only. */
async function decide(
  { request, info }: AuthorizedRequest,
  { proven, verb }: { readonly proven: Authentication; readonly verb: string },
  { authorizer, impersonate }: Rights,
  signal: AbortSignal,
): Promise<Decision> {
  const action = { verb, resource: info }
  const acting = await impersonate(request, proven, action, signal)
  const attributes = { user: acting.user, ...action }
  return scopeDecision(acting, attributes) ?? authorizer.authorize(attributes, signal)
}

/** A connection that leaves HTTP carries anything in both directions: the right to read is not enough for it. */
export async function requireCreate(
  asked: AuthorizedRequest,
  rights: Rights,
  signal: AbortSignal,
): Promise<void> {
  const verb = 'create'
  const proven = provenBy(asked.authentication)
  const decision = await decide(asked, { proven, verb }, rights, signal)
  if (decision.allowed) return
  throw denial({ user: asked.authentication.user, verb, resource: asked.info }, decision)
}

/**
 * Why a request that was allowed once would not be allowed now: its credential may be good no longer, for example
 * because its service account is gone, or one of the rights may be gone, that to act as somebody else included.
 */
export async function lostRight(
  asked: AuthorizedRequest,
  verbs: readonly string[],
  rights: Rights,
  signal: AbortSignal,
): Promise<LostRight | undefined> {
  const proven = await provenAgain(asked, signal)
  if (!proven) return 'revoked'
  for (const verb of verbs) {
    const { allowed } = await decide(asked, { proven, verb }, rights, signal)
    if (!allowed) return 'not-authorized'
  }
  return undefined
}

/** Whom the credential of a request proves now, unless that is nobody or somebody else. */
async function provenAgain(
  asked: AuthorizedRequest,
  signal: AbortSignal,
): Promise<Authentication | undefined> {
  const { user } = provenBy(asked.authentication)
  try {
    const proven = await asked.reauthenticate(signal)
    const isSame = proven?.user.username === user.username && proven.user.uid === user.uid
    return isSame ? proven : undefined
  } catch (error) {
    if (hasReason(error, 'Unauthorized')) return undefined
    throw error
  }
}
