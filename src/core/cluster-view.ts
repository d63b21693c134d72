import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Authentication, Authorizer } from './auth.ts'
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

/** Where handlers add annotations to the audit event of their request. */
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
  /**
   * Authenticates the request once more, before impersonation, for streams that live on; `undefined` or a 401 if its
   * credential is no longer valid or is revoked.
   */
  reauthenticate(signal: AbortSignal): Promise<Authentication | undefined>
}

/** A client that requests a protocol other than HTTP. */
export interface UpgradingClient {
  /** Responds while the connection is still HTTP; it is closed afterwards. */
  readonly response: ServerResponse
  /** What the client has sent behind its request; withheld until the upstream has agreed. */
  readonly head: Buffer
  /** Takes the socket out of HTTP; the caller writes the `101`. Throws if the client has disconnected. */
  claim(): Duplex
}

/** Ends a stream whose credential is no longer valid. */
export class StreamCut extends Error {
  readonly reason: 'revoked' | 'credential-expired'

  constructor(reason: StreamCut['reason']) {
    super(reason)
    this.reason = reason
  }
}

/** Where the request pipeline ends: our own registry, or an upstream API server. */
export interface Backend {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  /** `here`: all steps run. `upstream`: authenticated and scoped here, authorized there. */
  owner(info: RequestInfo): 'here' | 'upstream'
  handle(
    request: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): void | Promise<void>
  /** Serves a request for another protocol; what it throws before it has claimed the socket becomes a Status. */
  upgrade(
    request: AuthorizedRequest,
    client: UpgradingClient,
    signal: AbortSignal,
  ): void | Promise<void>
}
