import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { ApiError, httpCodeOf, type Logger, SallyportError } from '../core/index.ts'
import { defaultServerLimits, discardUnreadBody } from '../http/index.ts'

/** A request that the proxy answers itself because it must not go on. */
export class Refusal extends SallyportError {
  readonly code = 'PROXY_REFUSED'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** 400: the request can be read in two ways, or in none. */
export const malformed = (why: string): Refusal => new Refusal(400, `Bad Request: ${why}`)

/** 403: the request is understood and not let through. */
export const forbidden = (why: string): Refusal => new Refusal(403, `Forbidden: ${why}`)

/** 404 in kubectl's words. */
export const pageNotFound = (): Refusal => new Refusal(404, '404 page not found')

interface FailureAnswer {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** Whether a request cannot be trusted to end where it seems to, and so nothing that follows it. */
export const isMalformed = (error: unknown): boolean =>
  (error instanceof ApiError && httpCodeOf[error.reason] === 400) ||
  (error instanceof Refusal && (error.status === 400 || error.status === 431))

/** Answers a request that failed before its answer began; cuts it otherwise. */
export function answerFailure(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  log: Logger,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const { status, text, headers } = failureAnswer(error, log)
  response.writeHead(status, {
    ...headers,
    'Content-Length': Buffer.byteLength(text),
    ...(isMalformed(error) && { Connection: 'close' }),
  })
  response.end(request.method === 'HEAD' ? undefined : text)
  discardUnreadBody(request, response, defaultServerLimits.lingerMs)
}

function failureAnswer(error: unknown, log: Logger): FailureAnswer {
  const plain = {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  }
  if (error instanceof Refusal)
    return {
      status: error.status,
      text: `${error.message}\n`,
      headers: { ...plain, ...error.headers },
    }
  if (error instanceof ApiError)
    return {
      status: httpCodeOf[error.reason],
      text: `${STATUS_CODES[httpCodeOf[error.reason]]}: ${error.message}\n`,
      headers: plain,
    }
  if (error instanceof SallyportError) {
    log.warn({ err: error }, 'request to the API server failed')
    return { status: 502, text: `Bad Gateway: ${error.message}\n`, headers: plain }
  }
  log.error({ err: error }, 'request failed')
  return { status: 500, text: 'Internal Server Error\n', headers: plain }
}
