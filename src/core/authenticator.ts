import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Attributes } from './authorizer.ts'
import type { UserInfo } from './user-info.ts'

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
  /** Signs the answer so that its reader knows who gave it; the whole body is needed for that. */
  readonly signAnswer?: (body: Uint8Array) => string
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
