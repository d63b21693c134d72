import { inspect } from 'node:util'
import { SallyportError } from '../core/index.ts'

/** Why there is no credential; stable, for programs to branch on. */
export type CredentialErrorCode =
  /** The plugin's command is not installed. */
  | 'NOT_FOUND'
  /** There is such a file, but it cannot be run. */
  | 'NOT_EXECUTABLE'
  /** The system did not start it. */
  | 'SPAWN'
  /** What the plugin is told does not fit into its environment. */
  | 'INPUT_TOO_LARGE'
  /** It ended with a code other than 0. */
  | 'EXIT'
  | 'SIGNAL'
  | 'TIMEOUT'
  | 'OUTPUT_TOO_LARGE'
  /** Its output is not what it should be. */
  | 'DECODE'
  | 'VERSION_MISMATCH'
  | 'NO_STATUS'
  | 'NO_CREDENTIAL'
  /** The token cannot be sent in a header. */
  | 'TOKEN_INVALID'
  | 'CERTIFICATE_INVALID'
  | 'CERT_KEY_MISMATCH'
  | 'INTERACTIVE_UNAVAILABLE'
  | 'POLICY_DENIED'
  | 'RECURSION'
  | 'ABORTED'
  /** The configuration asks for something impossible. */
  | 'CONFIG_INVALID'
  /** A way to obtain credentials that is not, or no longer, supported. */
  | 'UNSUPPORTED'
  /** A file with a credential cannot be read or is empty. */
  | 'FILE'
  /** A provider did not give one. */
  | 'PROVIDER'
  /** It failed a moment ago and is not tried again yet. */
  | 'BACKING_OFF'
  | 'DISPOSED'

/** The facts of a failure; none of them is a credential, an argument or a value of the environment. */
export interface CredentialFailure {
  /** The plugin's command as the kubeconfig has it. */
  readonly command?: string
  /** The file that stands for. */
  readonly resolvedPath?: string
  readonly exitCode?: number
  readonly signal?: string
  /** What the user can do about it. */
  readonly hint?: string
  readonly detail?: string
  /** Must be free of credentials too; system errors of `spawn` are not, they carry the arguments. */
  readonly cause?: unknown
}

/** There is no credential to be had; says why without quoting any output, argument or token. */
export class CredentialError extends SallyportError {
  readonly code: CredentialErrorCode
  readonly command: string | undefined
  readonly resolvedPath: string | undefined
  readonly exitCode: number | undefined
  readonly signal: string | undefined
  readonly hint: string | undefined

  constructor(code: CredentialErrorCode, message: string, failure: CredentialFailure = {}) {
    super(message, {
      ...(failure.cause !== undefined && { cause: failure.cause }),
      ...(failure.detail !== undefined && { detail: failure.detail }),
    })
    this.code = code
    this.command = failure.command
    this.resolvedPath = failure.resolvedPath
    this.exitCode = failure.exitCode
    this.signal = failure.signal
    this.hint = failure.hint
  }

  toJSON(): Record<string, unknown> {
    const { name, code, message, command, resolvedPath, exitCode, signal, hint } = this
    return { name, code, message, command, resolvedPath, exitCode, signal, hint }
  }

  [inspect.custom](): string {
    return `${this.stack ?? this.message} [${this.code}]`
  }
}
