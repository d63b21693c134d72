import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authentication, Authenticator } from './authenticator.ts'
import type { Authorizer } from './authorizer.ts'
import type { ClusterView } from './cluster-view.ts'
import type { RequestInfo } from './request-info.ts'

/** A request that has passed every check of the pipeline. */
export interface AuthorizedRequest {
  readonly request: IncomingMessage
  /** The identity that acts, after impersonation. */
  readonly authentication: Authentication
  readonly info: RequestInfo
}

/** Where the request pipeline ends. */
export interface Backend {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly tokens: readonly Authenticator[]
  forward(request: AuthorizedRequest, response: ServerResponse, signal: AbortSignal): Promise<void>
}
