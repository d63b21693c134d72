import { ApiError, httpCodeOf, isRecord, type KubeObject } from '../core/index.ts'

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

/** Whether a Lease of a server still counts: renewed, or at least acquired, not longer ago than it lasts. */
export function isValidLease(lease: KubeObject, now: number): boolean {
  const spec = lease['spec']
  if (!isRecord(spec)) return false
  const since = spec['renewTime'] ?? spec['acquireTime']
  const seconds = spec['leaseDurationSeconds']
  if (typeof since !== 'string' || typeof seconds !== 'number') return false
  return Date.parse(since) + seconds * 1_000 > now
}
