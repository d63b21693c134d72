import {
  type Authentication,
  badRequest,
  type KubeObject,
  SallyportError,
  type UserInfo,
} from '../../core/index.ts'
import { fieldsAt, textAt, textsAt } from '../kinds/fields.ts'

/**
 * Proves a bearer token by itself, for the audiences given (empty: those of the API server).
 * `undefined` = nobody knows such a token. A throw = known, and bad.
 */
export type AuthenticateToken = (
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
  authenticate: AuthenticateToken,
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
    // Whoever may review tokens is told why one is bad, as in Kubernetes; its bearer is not.
    return { user: {}, error: `[invalid bearer token, ${error.detail ?? error.message}]` }
  }
}

/** Answers TokenReview: whose token is this? */
export async function reviewToken(
  object: KubeObject,
  authenticate: AuthenticateToken,
  signal: AbortSignal,
): Promise<KubeObject> {
  const spec = fieldsAt(object, 'spec')
  const token = textAt(spec, 'token')
  if (token === '') throw badRequest('token is required for TokenReview in authentication')
  const audiences = textsAt(spec, 'audiences')
  return { ...object, spec, status: await statusOf(authenticate, token, audiences, signal) }
}

/** Answers SelfSubjectReview: who am I? */
export const reviewSelf = (object: KubeObject, asker: UserInfo, now: string): KubeObject => ({
  kind: object.kind,
  apiVersion: object.apiVersion,
  metadata: { name: '', creationTimestamp: now },
  status: { userInfo: userAsJson(asker) },
})

/** Somebody asks for a token of the service account that `object` names. */
export interface TokenRequestCall {
  readonly object: KubeObject
  readonly asker: UserInfo
  readonly dryRun: boolean
}

/** A TokenRequest with its token, and what the asker should be warned about. */
export interface IssuedToken {
  readonly object: KubeObject
  readonly warnings: readonly string[]
  /** Which credential it is, for the audit log. */
  readonly credentialId: string
}

/** Makes tokens of service accounts; throws an ApiError for what it refuses. */
export type IssueToken = (call: TokenRequestCall, signal: AbortSignal) => Promise<IssuedToken>
