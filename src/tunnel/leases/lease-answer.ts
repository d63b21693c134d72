import { ApiError, httpCodeOf } from '../../core/index.ts'

/** How the cluster answered a question about Leases, as metrics count it; code 0 when it did not. */
export interface LeaseAnswer {
  readonly code: number
  readonly reason: string
}

/** It did what was asked. */
export const leasesAnswered: LeaseAnswer = { code: 200, reason: '' }

/** What a failure says about the answer. */
export const leaseAnswer = (error: unknown): LeaseAnswer =>
  error instanceof ApiError
    ? { code: httpCodeOf[error.reason], reason: error.reason }
    : { code: 0, reason: 'Unknown' }
