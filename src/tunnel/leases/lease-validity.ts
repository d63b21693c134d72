import { isRecord, type KubeObject } from '../../core/index.ts'

/** Whether a Lease of a server still counts: renewed, or at least acquired, not longer ago than it lasts. */
export function isValidLease(lease: KubeObject, now: number): boolean {
  const spec = lease['spec']
  if (!isRecord(spec)) return false
  const since = spec['renewTime'] ?? spec['acquireTime']
  const seconds = spec['leaseDurationSeconds']
  if (typeof since !== 'string' || typeof seconds !== 'number') return false
  return Date.parse(since) + seconds * 1_000 > now
}
