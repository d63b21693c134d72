/** The `reason` of a Kubernetes Status and the HTTP code that goes with it. */
export const httpCodeOf = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServerTimeout: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const

/** The machine-readable reason of a failure, as Kubernetes names it. */
export type StatusReason = keyof typeof httpCodeOf

/** One cause inside a Status: which field, what kind of problem, in words. */
export interface StatusCause {
  readonly reason?: string
  readonly message: string
  readonly field?: string
}

/** What a Status says about the object it concerns. */
export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

/** Root of every error we throw on purpose. `message` is safe to show to a caller. */
export abstract class SallyportError extends Error {
  /** Stable, for documents, `--output json` and tests. */
  abstract readonly code: string
  /** For the log only; may name internals, never a credential. */
  readonly detail: string | undefined

  constructor(message: string, options: { cause?: unknown; detail?: string } = {}) {
    super(message, { cause: options.cause })
    this.name = new.target.name
    this.detail = options.detail
  }
}

/** A failure that reaches an API client as a Kubernetes Status. */
export class ApiError extends SallyportError {
  readonly code: string
  readonly reason: StatusReason
  readonly details: StatusDetails | undefined
  /** Where a list that has expired can go on, without being consistent. */
  readonly continueToken: string | undefined

  constructor(
    reason: StatusReason,
    message: string,
    options: {
      details?: StatusDetails
      continueToken?: string
      cause?: unknown
      detail?: string
    } = {},
  ) {
    super(message, options)
    this.reason = reason
    this.code = reason
    this.details = options.details
    this.continueToken = options.continueToken
  }
}

/** Tells whether `error` is an ApiError with one of these reasons. */
export const hasReason = (error: unknown, ...reasons: readonly StatusReason[]): boolean =>
  error instanceof ApiError && reasons.includes(error.reason)

/** A command failed for a reason its user can act on; the command line prints `message` and exits 1. */
export class CommandFailed extends SallyportError {
  readonly code: string
  /** What the user can do about it. */
  readonly hint: string | undefined

  constructor(
    code: string,
    message: string,
    options: { hint?: string; cause?: unknown; detail?: string } = {},
  ) {
    super(message, options)
    this.code = code
    this.hint = options.hint
  }
}

/** A command was called wrongly; the command line prints `message` and exits 2. */
export class WrongUsage extends SallyportError {
  readonly code = 'WRONG_USAGE'
}

/** The `code` of a Node.js system error such as ENOENT, if `error` is one. */
export function systemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
