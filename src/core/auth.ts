import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Kind, KubeObject } from './kube-object.ts'

/** Who a request comes from, in the terms of Kubernetes' authentication API. */
export interface UserInfo {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/**
 * What is wrong with the name of a user, as in `the user name …`. Names with outer white space or control characters
 * do not survive a header unchanged, and look like another user's in a log.
 */
export function problemOfUserName(name: string): string | undefined {
  if (name.trim() === '') return 'is empty'
  if (name.trim() !== name) return 'begins or ends with white space'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'has control characters'
  return /\p{Surrogate}/u.test(name) ? 'is not Unicode' : undefined
}

/** Names that Kubernetes gives a meaning. */
export const wellKnown = {
  anonymous: 'system:anonymous',
  unauthenticated: 'system:unauthenticated',
  authenticated: 'system:authenticated',
  masters: 'system:masters',
  nodes: 'system:nodes',
  nodeUserPrefix: 'system:node:',
  serviceAccounts: 'system:serviceaccounts',
  serviceAccountUserPrefix: 'system:serviceaccount:',
} as const

const nodeNameForm =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** Whether a Node can have this name: a lower-case RFC 1123 subdomain. */
export const isNodeName = (name: string): boolean => nodeNameForm.test(name)

/** The ConfigMap with the revoked users and credentials. */
export const revocationListKey = { namespace: 'kube-system', name: 'sallyport-revoked' } as const

/** Where the server keeps which machine has a node name: ConfigMaps whose names begin like this. */
export const nodeNameReservations = {
  namespace: 'kube-system',
  namePrefix: 'sallyport-node-name-',
} as const

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
  /** Has no opinion on users outside of this group, and is not consulted for them. */
  readonly group?: string
  authorize(attributes: Attributes, signal: AbortSignal): Decision | Promise<Decision>
  rulesFor(
    user: UserInfo,
    namespace: string,
    signal: AbortSignal,
  ): RulesOfUser | Promise<RulesOfUser>
}

/** What an authenticator may look at; requests of HTTP/1.1 and HTTP/2 both have this shape. */
export interface AuthenticationRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly socket: Socket
}

/** Limits a credential to less than its user's rights; checked before any other authorization. */
export interface Scope {
  /** Stated in refusals, for example `cluster-info`. */
  readonly name: string
  permits(attributes: Attributes): boolean
}

/** Which credential proved the identity, so that it can be revoked by itself. */
export type CredentialId =
  | { readonly type: 'certificate'; readonly serial: string }
  | { readonly type: 'token'; readonly id: string }

/** The outcome of a successful authentication. */
export interface Authentication {
  readonly user: UserInfo
  /** Name of the authenticator, for audit and metrics. */
  readonly method: string
  readonly scope?: Scope
  /** Who really asks, when they act as somebody else. */
  readonly impersonator?: UserInfo
  readonly credential?: CredentialId
  /** For whom the credential was made, if it says so. */
  readonly audiences?: readonly string[]
  /** What the audit log shall say of the credential's use, by annotation. */
  readonly auditNotes?: Readonly<Record<string, string>>
  /** Signs the response for clients that do not trust the connection; the whole body is needed for that. */
  readonly signResponse?: (body: Uint8Array) => string
  /** When the credential dies (epoch milliseconds); open streams are cut then. */
  readonly expiresAt?: number
}

/**
 * Proves who sent a request. `undefined` = not my kind of credential, ask the next.
 * A throw = my kind, and bad: stop here.
 */
export interface Authenticator {
  readonly name: string
  authenticate(
    request: AuthenticationRequest,
    signal: AbortSignal,
  ): Authentication | undefined | Promise<Authentication | undefined>
}

/** A write that is about to happen: rights are checked, the object is decoded, nothing is stored. */
export interface WriteAttempt {
  readonly user: UserInfo
  readonly operation: 'create' | 'update' | 'delete'
  readonly kind: Kind
  /** Empty for the object itself. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** The object as it would be stored; absent for delete. */
  readonly object?: KubeObject
  /** The object as it is stored; absent for create. */
  readonly oldObject?: KubeObject
  readonly dryRun: boolean
}

/** A last check on a write beyond authorization; throws an ApiError to refuse it. */
export type Admission = (attempt: WriteAttempt, signal: AbortSignal) => void | Promise<void>
