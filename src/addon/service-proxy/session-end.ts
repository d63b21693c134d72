import type { ServerResponse } from 'node:http'
import {
  ApiError,
  type AuthorizedRequest,
  hasReason,
  StreamCut,
  unauthorized,
} from '../../core/index.ts'
import type { SessionKind } from './limits.ts'
import type { CutReason, Session } from './session.ts'

/** A request whose session ends with it. */
interface FollowedRequest {
  readonly authorized: AuthorizedRequest
  readonly response: ServerResponse
  readonly kind: SessionKind
  readonly signal: AbortSignal
}

/** Ends the session when its client or its credential is gone, and says in the audit log why it was ended. */
export function follow(
  { authorized, response, kind, signal }: FollowedRequest,
  session: Session,
): () => void {
  const note = (): void => {
    if (wasCut(session)) authorized.audit?.annotate('sallyport.dev/ended', session.reason)
  }
  session.signal.addEventListener('abort', note, { once: true })
  const abort = (): void => {
    const reason = reasonOf(signal.reason)
    // A request under way at the end of the server is answered; what has no end is not waited for.
    const mayFinish = reason === 'shutdown' && kind === 'Request' && !isEventStream(response)
    if (!mayFinish) session.cut(reason)
  }
  const gone = (): void => {
    if (!response.writableFinished) session.cut('client-gone')
  }
  signal.addEventListener('abort', abort, { once: true })
  response.once('close', gone)
  if (signal.aborted) abort()
  return () => {
    signal.removeEventListener('abort', abort)
    response.off('close', gone)
  }
}

/** Clients end tunnels by going; of a request it means that the answer was not wanted any more. */
export function wasCut(session: Session): session is Session & { readonly reason: CutReason } {
  const { reason, facts } = session
  return reason !== undefined && !(reason === 'client-gone' && facts.kind === 'Tunnel')
}

function reasonOf(error: unknown): CutReason {
  if (error instanceof StreamCut) return error.reason
  return hasReason(error, 'ServiceUnavailable') ? 'shutdown' : 'client-gone'
}

const isEventStream = (response: ServerResponse): boolean =>
  String(response.getHeader('content-type') ?? '').startsWith('text/event-stream')

/** What a client is told that has not been answered yet. */
export function inWords(reason: CutReason, error: unknown): unknown {
  if (reason === 'max-age' || reason === 'idle')
    return new ApiError('Timeout', 'the add-on did not answer within the allotted time')
  if (reason === 'deleted')
    return new ApiError('ServiceUnavailable', 'the session was ended by somebody who may')
  if (reason === 'revoked') return unauthorized('the credential is no longer good')
  if (reason === 'not-authorized')
    return new ApiError('Forbidden', 'the right to this request was taken away while it was open')
  return error
}
