/** Something that happened to a credential; holds no credential itself. */
export type CredentialEvent =
  /** A plugin is being started. */
  | { readonly type: 'run-start'; readonly command: string }
  /** A plugin has ended, well or not. */
  | {
      readonly type: 'run-end'
      readonly command: string
      readonly durationMs: number
      readonly status: CallStatus
      readonly exitCode: number
      readonly error?: unknown
    }
  /** The plugin policy was asked, and allowed it. */
  | { readonly type: 'allowed'; readonly command: string }
  /** The plugin policy forbids the command. */
  | { readonly type: 'denied'; readonly command: string }
  /** A new credential has taken the place of another. */
  | {
      readonly type: 'rotate'
      /** How long the one before was held. */
      readonly ageMs: number
      /** Whether the client certificate is another one. */
      readonly certificateChanged: boolean
      readonly expiresAt?: number
    }
  /** A credential was fetched, the first one or a later one. */
  | { readonly type: 'fetched'; readonly expiresAt?: number; readonly certificateEndsAt?: number }
  /** No successor could be had. */
  | {
      readonly type: 'refresh-failed'
      readonly error: unknown
      /** How long the present one can still be used; nothing if there is none. */
      readonly usableForMs: number
    }

/** How a call of a plugin ended, in the words of Kubernetes' metrics. */
export type CallStatus =
  | 'no_error'
  | 'plugin_execution_error'
  | 'plugin_not_found_error'
  | 'client_internal_error'

/** Is told what happens to credentials. Must not throw. */
export interface CredentialObserver {
  notify(event: CredentialEvent): void
}

/** An observer that looks away. */
export const nobody: CredentialObserver = { notify: () => {} }
