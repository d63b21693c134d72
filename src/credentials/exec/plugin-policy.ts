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
