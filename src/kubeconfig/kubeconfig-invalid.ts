import { SallyportError } from '../core/index.ts'

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
