import {
  ApiError,
  type Authorizer,
  type Clock,
  type KubeObject,
  kubeTime,
  type ReviewKind,
  type UserInfo,
} from '../../core/index.ts'
import { reviewAccess, reviewRules } from './access-review.ts'
import { reviewSelf, reviewToken, type TokenAuthenticator } from './token-review.ts'

export { type ReviewResource, reviewResources } from './review-table.ts'
export type { TokenAuthenticator } from './token-review.ts'

/** What reviews are answered with. */
export interface ReviewSources {
  readonly authorizer: Authorizer
  readonly authenticateToken: TokenAuthenticator
  readonly clock: Clock
}

/** Answers any review for the user who asks. */
export async function answerReview(
  object: KubeObject,
  asker: UserInfo,
  sources: ReviewSources,
  signal: AbortSignal,
): Promise<KubeObject> {
  const kind = object.kind as ReviewKind
  switch (kind) {
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
      throw new ApiError('NotFound', 'the server could not find the requested resource')
  }
}
