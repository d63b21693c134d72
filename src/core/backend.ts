import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authentication, Authenticator } from './authenticator.ts'
import type { Authorizer } from './authorizer.ts'
import type { ClusterView } from './cluster-view.ts'
import type { RequestInfo } from './request-info.ts'

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
