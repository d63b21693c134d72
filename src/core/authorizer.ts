import type { UserInfo } from './user-info.ts'

/** What somebody wants to do, as RBAC sees it. */
export interface Attributes {
  readonly user: UserInfo
  readonly verb: string
  /** For resource requests; absent for plain paths. */
  readonly resource?: ResourceAttributes
  /** For non-resource requests. */
  readonly path?: string
}

/** The object of a resource request; empty string means "none" or "all", as in Kubernetes. */
export interface ResourceAttributes {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** Which objects of a list, watch or deletecollection are meant. */
  readonly fieldSelector?: string
}

/** An answer to "may they?". `denied` forbids other authorizers from allowing it. */
export interface Decision {
  readonly allowed: boolean
  readonly denied?: boolean
  readonly reason: string
  readonly evaluationError?: string
}

/** A rule on resources, as RBAC and SelfSubjectRulesReview write it. */
export interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** A rule on plain paths. */
export interface NonResourceRule {
  readonly verbs: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

/** Everything a user may do in one namespace. */
export interface RulesOfUser {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly NonResourceRule[]
  readonly incomplete: boolean
  readonly evaluationError?: string
}

/** Decides who may do what. Local: RBAC; remote: SubjectAccessReview. */
export interface Authorizer {
  authorize(attributes: Attributes, signal: AbortSignal): Decision | Promise<Decision>
  rulesFor(
    user: UserInfo,
    namespace: string,
    signal: AbortSignal,
  ): RulesOfUser | Promise<RulesOfUser>
}
