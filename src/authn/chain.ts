import {
  type Attributes,
  type Authentication,
  type AuthenticationRequest,
  type Authenticator,
  type Decision,
  problemOfUserName,
  unauthorized,
  wellKnown,
} from '../core/index.ts'

/**
 * Asks in order; the first that knows the credential decides. Stricter than Kubernetes, which goes
 * on after an error: a credential that is present and wrong ends the search. Whoever is found is in
 * `system:authenticated`, unless anonymous.
 */
export function firstOf(authenticators: readonly Authenticator[]): Authenticator {
  const completed = new WeakMap<Authentication, Authentication>()

  /** The same object for the same credential, so that what is kept per user is found again. */
  const complete = (found: Authentication): Authentication => {
    const known = completed.get(found)
    if (known) return known
    const result = completeIdentity(found)
    completed.set(found, result)
    return result
  }

  const askFrom = (
    start: number,
    request: AuthenticationRequest,
    signal: AbortSignal,
  ): Authentication | undefined | Promise<Authentication | undefined> => {
    for (let index = start; index < authenticators.length; index += 1) {
      const found = authenticators[index]?.authenticate(request, signal)
      if (found instanceof Promise) {
        return found.then((result) =>
          result ? complete(result) : askFrom(index + 1, request, signal),
        )
      }
      if (found) return complete(found)
    }
    return undefined
  }

  return { name: 'chain', authenticate: (request, signal) => askFrom(0, request, signal) }
}

/**
 * What a credential proves, for requests and for TokenReview. Refuses user names that do not survive a header, and puts
 * all users but the anonymous one into `system:authenticated`, unless a group says otherwise. Throws Unauthorized.
 */
export function completeIdentity(found: Authentication): Authentication {
  const { user } = found
  const problem = problemOfUserName(user.username)
  if (problem !== undefined) throw unauthorized(`${found.method}: the user name ${problem}`)
  const has = (group: string) => user.groups.includes(group)
  if (user.username === wellKnown.anonymous) return found
  if (has(wellKnown.authenticated) || has(wellKnown.unauthenticated)) return found
  return { ...found, user: { ...user, groups: [...user.groups, wellKnown.authenticated] } }
}

/** The refusal of what a credential is not meant for; `undefined` when its scope, if any, permits it. */
export function scopeDecision(
  { scope }: Pick<Authentication, 'scope'>,
  attributes: Attributes,
): Decision | undefined {
  if (!scope || scope.permits(attributes)) return undefined
  const reason = `the credential may only be used for ${scope.name}`
  return { allowed: false, denied: true, reason }
}
