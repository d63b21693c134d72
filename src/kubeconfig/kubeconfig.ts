import { SallyportError, type Secret } from '../core/index.ts'

/** Fields that we do not know; kept so that a file loses nothing when it is written again. */
export type UnknownFields = Readonly<Record<string, unknown>>

/** How to reach a cluster and which server to believe. */
export interface Cluster {
  readonly server: string
  readonly tlsServerName?: string
  readonly insecureSkipTlsVerify?: boolean
  /** Path of a PEM file; absolute once the kubeconfig is loaded from a file. */
  readonly certificateAuthority?: string
  /** PEM text; goes before the file. */
  readonly certificateAuthorityData?: string
  /** May hold a password: not for logs. */
  readonly proxyUrl?: string
  readonly disableCompression?: boolean
  readonly extensions?: Extensions
  readonly unknown?: UnknownFields
}

/** Data of others, by name. */
export type Extensions = ReadonlyMap<string, unknown>

/** A command that hands out credentials. */
export interface ExecConfig {
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: Secret }[]
  readonly apiVersion: string
  readonly installHint?: string
  readonly provideClusterInfo?: boolean
  readonly interactiveMode?: string
  readonly unknown?: UnknownFields
}

/** A built-in way to obtain credentials, from before exec plugins. */
export interface AuthProviderConfig {
  readonly name: string
  /** Secrets, since tokens are among them. */
  readonly config?: Readonly<Record<string, Secret>>
  readonly unknown?: UnknownFields
}

/** How to prove who one is. */
export interface KubeconfigUser {
  readonly clientCertificate?: string
  /** PEM text; goes before the file. */
  readonly clientCertificateData?: string
  readonly clientKey?: string
  readonly clientKeyData?: Secret
  readonly token?: Secret
  readonly tokenFile?: string
  readonly username?: string
  readonly password?: Secret
  readonly impersonate?: Impersonation
  readonly authProvider?: AuthProviderConfig
  readonly exec?: ExecConfig
  readonly extensions?: Extensions
  readonly unknown?: UnknownFields
}

/** As whom to act: the `as` fields of a user. */
export interface Impersonation {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** A cluster and a user that belong together. */
export interface Context {
  readonly cluster: string
  readonly user: string
  readonly namespace?: string
  readonly extensions?: Extensions
  readonly unknown?: UnknownFields
}

/** A kubeconfig, of one file or merged from several. */
export interface Kubeconfig {
  /** Empty if there is none. */
  readonly currentContext: string
  readonly clusters: ReadonlyMap<string, Cluster>
  readonly users: ReadonlyMap<string, KubeconfigUser>
  readonly contexts: ReadonlyMap<string, Context>
  readonly extensions?: Extensions
  readonly unknown?: UnknownFields
}

/** A kubeconfig with mistakes; `problems` has all of them, each with the place where it is. */
export class KubeconfigInvalid extends SallyportError {
  readonly code = 'KUBECONFIG_INVALID'
  /** The file or the part that has them. */
  readonly where: string
  readonly problems: readonly string[]

  constructor(where: string, problems: readonly string[], options: { cause?: unknown } = {}) {
    super(
      problems.length === 1
        ? `${where}: ${problems[0]}`
        : `${where} has ${problems.length} problems:\n${problems.map((p) => `  ${p}`).join('\n')}`,
      options,
    )
    this.where = where
    this.problems = problems
  }
}
