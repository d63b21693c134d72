import { CommandFailed } from '../core/index.ts'

/** A failure that has a result all the same, such as what a check has found. */
export class FailedWithResult extends CommandFailed {
  /** What `--output json` prints beside the error. */
  readonly result: object

  constructor(
    failure: { readonly code: string; readonly message: string; readonly hint: string },
    result: object,
  ) {
    super(failure.code, failure.message, { hint: failure.hint })
    this.result = result
  }
}
