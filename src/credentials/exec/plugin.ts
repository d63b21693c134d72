import type { Writable } from 'node:stream'
import { type Clock, goQuote } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import type { Refusal } from '../credential.ts'
import { CredentialError, type CredentialErrorCode, type CredentialFailure } from '../errors.ts'

/** What a plugin may be told about the cluster that the credential is for. */
export interface ExecClusterInfo {
  readonly server: string
  readonly tlsServerName?: string
  readonly insecureSkipTlsVerify?: boolean
  /** PEM text, never a path. */
  readonly certificateAuthorityData?: string
  readonly proxyUrl?: string
  readonly disableCompression?: boolean
  /** The cluster's extension `client.authentication.k8s.io/exec`. */
  readonly config?: unknown
}

/** One run of a plugin: what to run and why. */
export interface PluginRun {
  readonly exec: ExecConfig
  /** Needed if `exec.provideClusterInfo` is set, not used otherwise. */
  readonly cluster?: ExecClusterInfo
  /** The answer that made this run necessary, if one did. */
  readonly refusal?: Refusal
}

/** One command that may run. */
export interface AllowlistEntry {
  /** An absolute path, or a bare name for whatever PATH has under it. */
  readonly command: string
}

/** Which plugins may run at all. */
export interface PluginPolicy {
  readonly policy: 'AllowAll' | 'DenyAll' | 'Allowlist'
  /** With Allowlist only, and then never empty. */
  readonly allowlist?: readonly AllowlistEntry[]
}

/** What a file is to somebody who wants to run it. */
export type Runnable = 'runnable' | 'not-runnable' | 'missing'

/** The process that plugins run under, and its rules for them. `nodePluginHost` makes one of this process. */
export interface PluginHost {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where plugins run. */
  readonly cwd: string
  readonly platform: string
  readonly clock: Clock
  stdinIsTty(): boolean
  /** Set if the application itself reads stdin; a text says why. */
  readonly stdinUnavailable?: string | true
  /** Where a plugin's prompts and complaints go. */
  readonly stderr: 'inherit' | Writable
  /** Ends a process and all that it has started. */
  killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void
  /**
   * Ends the plugins that run when it aborts, with all that they have started. They are in process groups of their own,
   * so that a Ctrl-C at the terminal does not reach them.
   */
  readonly interrupt?: AbortSignal
  /** Variables of the host that plugins do not get. */
  readonly dropEnv?: readonly string[] | ((name: string) => boolean)
  /** 0 for no limit. Default: none while a user is asked, 60 s otherwise. */
  readonly timeoutMs?: number
  /** Time between SIGTERM and SIGKILL. */
  readonly killGraceMs?: number
  readonly maxOutputBytes?: number
  /** Which commands may run; any if absent. */
  readonly policy?: PluginPolicy
  /** How v1alpha1 plugins are told things: as Kubernetes shipped it, or as the proposal (`ExecInfo`) had it. */
  readonly inputDialect?: 'shipped' | 'seed'
  /** Looks at a file; replaceable so that rules of other systems can be tested. */
  readonly lookAt?: (path: string) => Promise<Runnable>
}

/** A plugin as messages name it. */
export interface PluginName {
  readonly command: string
  readonly resolvedPath?: string
}

/** What went wrong with a plugin; `what` follows its name in a sentence. */
export function pluginError(
  code: CredentialErrorCode,
  { command, resolvedPath }: PluginName,
  what: string,
  more: CredentialFailure = {},
): CredentialError {
  return new CredentialError(code, `exec plugin ${goQuote(command)} ${what}`, {
    command,
    ...(resolvedPath !== undefined && { resolvedPath }),
    ...more,
  })
}

const authenticationGroup = 'client.authentication.k8s.io'

/** The version of the proposal, and of Kubernetes 1.10 to 1.23. */
export const v1alpha1 = `${authenticationGroup}/v1alpha1`
const v1beta1 = `${authenticationGroup}/v1beta1`
/** Kubernetes 1.22 and later; says what its interactive mode is. */
export const v1 = `${authenticationGroup}/v1`

const known: readonly string[] = [v1alpha1, v1beta1, v1]

/** Tells whether we speak this version. */
export const isKnownVersion = (apiVersion: string): boolean => known.includes(apiVersion)

/** All versions, for messages. */
export const knownVersions = known.join(', ')

/** The variable that tells a plugin what is asked of it. */
export const execInfoVariable = 'KUBERNETES_EXEC_INFO'
