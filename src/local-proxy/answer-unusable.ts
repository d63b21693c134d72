import { SallyportError } from '../core/index.ts'

/** The API server has answered, but with something that nobody can use; never quotes the answer. */
export class AnswerUnusable extends SallyportError {
  readonly code = 'PROXY_ANSWER_UNUSABLE'
}
