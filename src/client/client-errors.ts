import { SallyportError } from '../core/index.ts'
import { ConnectionFailed } from '../credentials/transport/index.ts'

export {
  ClientConfigInvalid,
  ConnectionFailed,
  connectionFailed,
} from '../credentials/transport/index.ts'

/** No whole answer came in time. */
export class RequestTimedOut extends ConnectionFailed {
  override readonly code = 'CLIENT_REQUEST_TIMED_OUT'
}

/** An answer came that no Kubernetes API server should give. */
export class AnswerInvalid extends SallyportError {
  readonly code = 'CLIENT_ANSWER_INVALID'
}
