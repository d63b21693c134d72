import { goQuote } from './quote.ts'

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
  /** Ours: Kubernetes has no reason for a store that is full, only etcd's message with a 500. */
  InsufficientStorage: 507,
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

/** A resource as error messages name it: plural name and API group. */
export interface GroupResource {
  readonly group: string
  readonly resource: string
}

const qualified = (r: GroupResource): string => (r.group ? `${r.resource}.${r.group}` : r.resource)
const about = (r: GroupResource, name: string) => ({
  ...(name && { name }),
  ...(r.group && { group: r.group }),
  kind: r.resource,
})

/** 404: the object is not there. */
export const notFound = (resource: GroupResource, name: string): ApiError =>
  new ApiError('NotFound', `${qualified(resource)} ${goQuote(name)} not found`, {
    details: about(resource, name),
  })

/** 409: an object of that name is there already. */
export const alreadyExists = (resource: GroupResource, name: string): ApiError =>
  new ApiError('AlreadyExists', `${qualified(resource)} ${goQuote(name)} already exists`, {
    details: about(resource, name),
  })

/** 409: the object is not in the state that the request was made for. */
export const conflict = (resource: GroupResource, name: string, why: string): ApiError =>
  new ApiError(
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} ${goQuote(name)}: ${why}`,
    {
      details: about(resource, name),
    },
  )

/** 409 after a lost compare-and-swap, in the words that clients know. */
export const objectModified = (resource: GroupResource, name: string): ApiError =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

/** 403: known who you are, and you may not. */
export const forbidden = (resource: GroupResource, name: string, why: string): ApiError =>
  new ApiError(
    'Forbidden',
    name
      ? `${qualified(resource)} ${goQuote(name)} is forbidden: ${why}`
      : `${qualified(resource)} is forbidden: ${why}`,
    { details: about(resource, name) },
  )

/** 400: the request cannot be understood. */
export const badRequest = (message: string): ApiError => new ApiError('BadRequest', message)

/** 404 for a path at which nothing is served. */
export const notServed = (): ApiError =>
  new ApiError('NotFound', 'the server could not find the requested resource', { details: {} })

/** 405: the path is there, but not for this method. */
export const methodNotAllowed = (): ApiError =>
  new ApiError(
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    { details: {} },
  )

/** 401 in the one form that tells a stranger nothing. */
export const unauthorized = (detail?: string): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized', detail === undefined ? {} : { detail })

/** 422: every problem of the object at once. `kind` is the kind's name and group, not the plural. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly StatusCause[],
): ApiError {
  const lines = causes.map((cause) =>
    cause.field ? `${cause.field}: ${cause.message}` : cause.message,
  )
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const shown = kind.group ? `${kind.kind}.${kind.group}` : kind.kind
  return new ApiError('Invalid', `${shown} ${goQuote(name)} is invalid: ${list}`, {
    details: {
      ...(name && { name }),
      ...(kind.group && { group: kind.group }),
      kind: kind.kind,
      causes,
    },
  })
}

/** The Kubernetes object that reports the outcome of a request. */
export interface KubeStatus {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: StatusReason
  readonly details?: StatusDetails
  readonly code: number
}

/** The one place where an error becomes an answer. Anything unknown is a bare 500. */
export function toKubeStatus(error: unknown): KubeStatus {
  const known = error instanceof ApiError ? error : undefined
  const reason = known?.reason ?? 'InternalError'
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: known?.continueToken === undefined ? {} : { continue: known.continueToken },
    status: 'Failure',
    message: known?.message ?? 'Internal error occurred',
    reason,
    ...(known?.details && { details: known.details }),
    code: httpCodeOf[reason],
  }
}
