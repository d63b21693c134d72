import { SallyportError } from '../../core/index.ts'

/** An answer that cannot be passed on. */
export class AnswerUnusable extends SallyportError {
  readonly code = 'ADDON_ANSWER_UNUSABLE'
}
