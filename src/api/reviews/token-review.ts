import {
  type Authentication,
  badRequest,
  isRecord,
  type KubeObject,
  SallyportError,
  type UserInfo,
} from '../../core/index.ts'

/**
 * Proves a bearer token by itself, for the audiences given (empty: those of the API server).
 * `undefined` = nobody knows such a token. A throw = known, and bad.
 */
export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[],
  signal: AbortSignal,
) => Promise<Authentication | undefined>

/** A user as the authentication API writes it. */
function userAsJson(user: UserInfo): Record<string, unknown> {
  return {
    username: user.username,
    ...(user.uid && { uid: user.uid }),
    ...(user.groups.length > 0 && { groups: user.groups }),
    ...(user.extra && Object.keys(user.extra).length > 0 && { extra: user.extra }),
  }
}

async function statusOf(
  authenticate: TokenAuthenticator,
  token: string,
  audiences: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  try {
    const found = await authenticate(token, audiences, signal)
    if (!found) return { user: {}, error: 'invalid bearer token' }
    return {
      authenticated: true,
      user: userAsJson(found.user),
      ...(found.audiences && { audiences: found.audiences }),
    }
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    return { user: {}, error: `[invalid bearer token, ${error.detail ?? error.message}]` }
  }
}

/** Answers TokenReview: whose token is this? */
export async function reviewToken(
  object: KubeObject,
  authenticate: TokenAuthenticator,
  signal: AbortSignal,
): Promise<KubeObject> {
  const spec = isRecord(object['spec']) ? object['spec'] : {}
  const token = spec['token']
  if (typeof token !== 'string' || token === '')
    throw badRequest('token is required for TokenReview in authentication')
  const audiences = Array.isArray(spec['audiences'])
    ? spec['audiences'].filter((item): item is string => typeof item === 'string')
    : []
  return { ...object, spec, status: await statusOf(authenticate, token, audiences, signal) }
}

/** Answers SelfSubjectReview: who am I? */
export const reviewSelf = (object: KubeObject, asker: UserInfo, now: string): KubeObject => ({
  kind: object.kind,
  apiVersion: object.apiVersion,
  metadata: { name: '', creationTimestamp: now },
  status: { userInfo: userAsJson(asker) },
})
