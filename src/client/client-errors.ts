import { SallyportError, systemErrorCode } from '../core/index.ts'

/** No whole answer came: whether the server did what was asked is unknown, unless it was a read. */
export class ConnectionFailed extends SallyportError {
  readonly code: string = 'CLIENT_CONNECTION_FAILED'
}

/** No whole answer came in time. */
export class RequestTimedOut extends ConnectionFailed {
  override readonly code = 'CLIENT_REQUEST_TIMED_OUT'
}

/** An answer came that no Kubernetes API server should give. */
export class AnswerInvalid extends SallyportError {
  readonly code = 'CLIENT_ANSWER_INVALID'
}

/** A client cannot be made from what it was given. */
export class ClientConfigInvalid extends SallyportError {
  readonly code = 'CLIENT_CONFIG_INVALID'
}

/** What went wrong on the way to `server`, in the words of the system. */
export function connectionFailed(server: string, cause: unknown): ConnectionFailed {
  if (cause instanceof ConnectionFailed) return cause
  const code = systemErrorCode(cause)
  const words = cause instanceof Error && cause.message !== '' ? cause.message : (code ?? 'unknown')
  const shown = code === undefined || words.includes(code) ? words : `${words} (${code})`
  return new ConnectionFailed(`no answer from ${server}: ${shown}`, { cause })
}
