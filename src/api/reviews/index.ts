import {
  type Authorizer,
  type Clock,
  type KubeObject,
  kubeTime,
  notServed,
  type ReviewKind,
  type UserInfo,
} from '../../core/index.ts'
import { reviewAccess, reviewRules } from './access-review.ts'
import type { IssueToken } from './token-request.ts'
import { type AuthenticateToken, reviewSelf, reviewToken } from './token-review.ts'

export { type ReviewResource, reviewResources } from './review-table.ts'
export type { IssuedToken, IssueToken, TokenRequestCall } from './token-request.ts'

/** What reviews are answered with. */
export interface ReviewSources {
  readonly authorizer: Authorizer
  readonly authenticateToken: AuthenticateToken
  readonly clock: Clock
  /** Absent where nobody issues tokens. */
  readonly issueToken?: IssueToken | undefined
}

/** A question to the cluster, in the form of an object. */
export type Review = KubeObject & { readonly kind: ReviewKind }

/** Answers any review for the user who asks. */
export async function answerReview(
  object: Review,
  asker: UserInfo,
  sources: ReviewSources,
  signal: AbortSignal,
): Promise<KubeObject> {
  switch (object.kind) {
    case 'TokenReview':
      return reviewToken(object, sources.authenticateToken, signal)
    case 'SelfSubjectReview':
      return reviewSelf(object, asker, kubeTime(sources.clock.now()))
    case 'SelfSubjectRulesReview':
      return reviewRules(object, asker, sources.authorizer, signal)
    case 'SubjectAccessReview':
    case 'LocalSubjectAccessReview':
    case 'SelfSubjectAccessReview':
      return reviewAccess(object, asker, sources.authorizer, signal)
    case 'TokenRequest':
      if (!sources.issueToken) throw notServed()
      return (await sources.issueToken({ object, asker, dryRun: false }, signal)).object
  }
}
