import type { OptionTable } from '../../core/index.ts'

/** A word of a command line that is not an option, for example NAME. */
export interface ArgumentDeclaration {
  readonly name: string
  readonly describe: string
  readonly required?: boolean
  /** Takes all words that are left. */
  readonly repeatable?: boolean
}

/** How a command is called: enough to parse its line, to explain it and to document it. */
export interface CommandShape {
  /** As typed, for example `sallyport user create`. */
  readonly command: string
  /** One sentence that says what it does. */
  readonly summary: string
  readonly options: OptionTable
  readonly arguments?: readonly ArgumentDeclaration[]
  readonly examples: readonly { readonly line: string; readonly does: string }[]
}
