import { SallyportError } from '../../core/index.ts'

/** What the caller told the plugin cannot be used; the message says what to change. */
export class ExecInfoInvalid extends SallyportError {
  readonly code = 'EXEC_INFO_INVALID'
}
