import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authentication, Authenticator, Authorizer } from './auth.ts'
import type { Kind, KubeObject } from './kube-object.ts'
import type { RequestInfo } from './request-info.ts'

/** Names one object of a kind. */
export interface Key {
  readonly namespace?: string
  readonly name: string
}

/** Which objects of a kind are meant. */
export interface Query {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** A change that a watch reports. A bookmark carries nothing but its object's resourceVersion. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: KubeObject
}

/** What must be true of the stored object for a write to happen. */
export interface Preconditions {
  readonly resourceVersion?: string
  readonly uid?: string
}

/** A consistent set of objects and the moment it was true. */
export interface ObjectList {
  readonly items: KubeObject[]
  readonly resourceVersion: string
}

/** The kinds that are asked, not stored. */
export type ReviewKind =
  | 'TokenReview'
  | 'SubjectAccessReview'
  | 'LocalSubjectAccessReview'
  | 'SelfSubjectAccessReview'
  | 'SelfSubjectRulesReview'
  | 'SelfSubjectReview'
  | 'TokenRequest'

/** All that a feature may ask of a cluster. Local: our registry. Remote: a Kubernetes API server through `client/`. */
export interface ClusterView {
  /** `undefined` when there is no such object. */
  get(kind: Kind, key: Key, signal: AbortSignal): Promise<KubeObject | undefined>
  list(kind: Kind, query: Query, signal: AbortSignal): Promise<ObjectList>
  /** Changes after `from`; throws an ApiError with reason `Expired` when history no longer reaches back that far. */
  watch(
    kind: Kind,
    query: Query & { readonly from: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>
  /** For `delete` only kind, namespace and name of `object` matter. Returns the object as it now is, or was last before it went. */
  write(
    op: 'create' | 'update' | 'delete',
    object: KubeObject,
    options: { readonly subresource?: string } & Preconditions,
    signal: AbortSignal,
  ): Promise<KubeObject>
  review(kind: ReviewKind, object: KubeObject, signal: AbortSignal): Promise<KubeObject>
}

/** Where whoever answers a request notes what the audit log shall say of it. */
export interface AuditNotes {
  annotate(key: string, value: string): void
}

/** A request that has passed every check of the pipeline. */
export interface AuthorizedRequest {
  readonly request: IncomingMessage
  /** The identity that acts, after impersonation. */
  readonly authentication: Authentication
  readonly info: RequestInfo
  /** Absent where nothing is recorded. */
  readonly audit?: AuditNotes
}

/** Ends a stream whose credential no longer counts. */
export class StreamCut extends Error {
  readonly reason: 'revoked' | 'credential-expired'

  constructor(reason: StreamCut['reason']) {
    super(reason)
    this.reason = reason
  }
}

/** Where the request pipeline ends. */
export interface Backend {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly tokens: readonly Authenticator[]
  forward(request: AuthorizedRequest, response: ServerResponse, signal: AbortSignal): Promise<void>
}
