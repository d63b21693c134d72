import { ApiError, httpCodeOf, type StatusDetails, type StatusReason } from './errors.ts'

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
