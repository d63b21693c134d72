import { type KubeStatus, type Logger, SallyportError, toKubeStatus } from '../../core/index.ts'
import { ClientGone, isPoisoned } from '../../http/index.ts'
import type { Exchange } from './exchange.ts'

const incomplete = new Error('the response is incomplete')

/** A request exceeded a limit for which Kubernetes has no reason of its own, only an HTTP status code. */
export class LimitExceeded extends SallyportError {
  readonly code = 'LIMIT_EXCEEDED'
  readonly httpCode: 414 | 431

  constructor(httpCode: 414 | 431, message: string) {
    super(message)
    this.httpCode = httpCode
  }
}

/** Responds with the Status of an error; disconnects when the headers are sent already. */
export function sendFailure(exchange: Exchange, error: unknown, log: Logger): void {
  report(exchange, error, log)
  const { request, response } = exchange
  if (response.writableEnded) return // a complete response stays one
  if (response.headersSent || response.destroyed || error instanceof ClientGone) {
    exchange.disconnect(incomplete)
    return
  }
  const status = statusOf(error)
  exchange.failure = status
  const body = Buffer.from(`${JSON.stringify(status)}\n`)
  response.statusCode = status.code
  response.setHeader('Content-Type', 'application/json')
  response.setHeader('Content-Length', body.length)
  // Nothing that follows on this connection is read: a client must not send its next request there.
  if (isPoisoned(request.socket)) response.setHeader('Connection', 'close')
  const retryAfter = status.details?.retryAfterSeconds
  if (retryAfter !== undefined) response.setHeader('Retry-After', String(retryAfter))
  response.end(body)
}

function statusOf(error: unknown): KubeStatus {
  if (!(error instanceof LimitExceeded)) return toKubeStatus(error)
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: error.message,
    code: error.httpCode,
  }
}

function report(exchange: Exchange, error: unknown, log: Logger): void {
  const { auditId, info, request } = exchange
  const about = { auditId, method: request.method, path: info.path }
  if (exchange.aborted || error instanceof ClientGone) {
    log.debug({ ...about, err: error }, 'request was aborted')
    return
  }
  if (!(error instanceof SallyportError)) {
    log.error({ ...about, err: error }, 'request failed unexpectedly')
    return
  }
  const fields = { ...about, code: error.code, reason: error.message, detail: error.detail }
  if (toKubeStatus(error).code < 500 || error instanceof LimitExceeded) {
    log.debug(fields, 'request rejected')
  } else log.warn({ ...fields, err: error.cause }, 'request failed')
}
