import {
  type Authorizer,
  type Clock,
  type Kind,
  type KubeObject,
  kubeTime,
  notServed,
  type ReviewKind,
  type UserInfo,
} from '../../core/index.ts'
import { reviewAccess, reviewRules } from './access-review.ts'
import { type AuthenticateToken, type IssueToken, reviewSelf, reviewToken } from './token-review.ts'

export type { IssuedToken, IssueToken, TokenRequestCall } from './token-review.ts'

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

/** A kind that is asked by POST and never stored. */
export interface ReviewResource extends Kind {
  readonly kind: ReviewKind
  readonly singular: string
}

const authentication = { group: 'authentication.k8s.io', version: 'v1' } as const
const authorization = { group: 'authorization.k8s.io', version: 'v1' } as const

const review = (
  groupVersion: { readonly group: string; readonly version: string },
  kind: ReviewKind,
  namespaced = false,
): ReviewResource => ({
  ...groupVersion,
  kind,
  resource: `${kind.toLowerCase()}s`,
  singular: kind.toLowerCase(),
  namespaced,
})

/** Every review that the API serves at a path of its own. */
export const reviewResources: readonly ReviewResource[] = [
  review(authentication, 'SelfSubjectReview'),
  review(authentication, 'TokenReview'),
  review(authorization, 'LocalSubjectAccessReview', true),
  review(authorization, 'SelfSubjectAccessReview'),
  review(authorization, 'SelfSubjectRulesReview'),
  review(authorization, 'SubjectAccessReview'),
]
