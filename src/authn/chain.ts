import type { Socket } from 'node:net'
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
 * Tries authenticators in order; the first that knows the credential decides. Stricter than Kubernetes, which
 * continues after an error: a credential that is present and wrong ends the search. All users but the anonymous
 * one are in `system:authenticated`. Authenticators get the socket of the connection, over HTTP/2 too.
 */
export function firstOf(authenticators: readonly Authenticator[]): Authenticator {
  const tryFrom = (
    start: number,
    request: AuthenticationRequest,
    signal: AbortSignal,
  ): Authentication | undefined | Promise<Authentication | undefined> => {
    for (let index = start; index < authenticators.length; index += 1) {
      const found = authenticators[index]?.authenticate(request, signal)
      if (found instanceof Promise) {
        return found.then((result) =>
          result ? completeIdentity(result) : tryFrom(index + 1, request, signal),
        )
      }
      if (found) return completeIdentity(found)
    }
    return undefined
  }

  return {
    name: 'chain',
    authenticate: (request, signal) => tryFrom(0, onConnection(request), signal),
  }
}

interface Http2Request {
  readonly stream?: { readonly session?: { readonly socket: Socket } }
}

/** Each HTTP/2 request has a proxy object as `socket`, by which a verified connection is not recognized. */
function onConnection(request: AuthenticationRequest): AuthenticationRequest {
  const socket = (request as AuthenticationRequest & Http2Request).stream?.session?.socket
  if (socket === undefined || socket === request.socket) return request
  const { method, url, headers, rawHeaders } = request
  return { method, url, headers, rawHeaders, socket }
}

const completed = new WeakMap<Authentication, Authentication>()

/**
 * What a credential proves, for requests and for TokenReview. Returns the same object for the same credential, so that
 * caches per user find it again. Refuses user names that do not survive a header, and puts
 * all users but the anonymous one into `system:authenticated`, unless a group says otherwise. Throws Unauthorized.
 */
export function completeIdentity(found: Authentication): Authentication {
  const known = completed.get(found)
  if (known) return known
  const result = complete(found)
  completed.set(found, result)
  completed.set(result, result)
  return result
}

function complete(found: Authentication): Authentication {
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
