import type { Kind, ReviewKind } from '../../core/index.ts'

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
