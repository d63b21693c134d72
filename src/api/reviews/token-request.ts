import type { KubeObject, UserInfo } from '../../core/index.ts'

/** Somebody asks for a token of the service account that `object` names. */
export interface TokenRequestCall {
  readonly object: KubeObject
  readonly asker: UserInfo
  readonly dryRun: boolean
}

/** A TokenRequest with its token, and what the asker should be warned about. */
export interface IssuedToken {
  readonly object: KubeObject
  readonly warnings: readonly string[]
  /** Which credential it is, for the audit log. */
  readonly credentialId: string
}

/** Makes tokens of service accounts; throws an ApiError for what it refuses. */
export type IssueToken = (call: TokenRequestCall, signal: AbortSignal) => Promise<IssuedToken>
