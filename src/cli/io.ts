/** The world outside a command: where it prints, what it reads, how it is told to end. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** True when stderr is a terminal, so that progress makes sense. */
  readonly interactive: boolean
  /** Width of the terminal in columns. */
  readonly columns: number
  readonly isRoot: boolean
  readonly homeDirectory: string
  /** Results. */
  stdout(text: string): void
  /** Everything else. */
  stderr(text: string): void
  /** Aborts at the first request to end (Ctrl-C, SIGTERM). */
  readonly drain: AbortSignal
  /** Aborts at the second one. */
  readonly kill: AbortSignal
}
