import type { Difference } from './compare.ts'

/** A difference that is meant, for those who run clusters. */
export interface KnownDifference {
  /** What one notices. */
  readonly what: string
  readonly theirs: string
  readonly ours: string
  readonly why: string
  readonly matches: (difference: Difference) => boolean
}

/** Every purposeful difference between a real kube-apiserver and ours. */
export const knownDifferences: readonly KnownDifference[] = [
  {
    what: '`metadata.managedFields`',
    theirs: 'records which client set which field',
    ours: 'is never there',
    why: 'server-side apply is not served, and nothing else reads it',
    matches: ({ at, ours }) => at.endsWith('metadata.managedFields') && ours === undefined,
  },
  {
    what: '`X-Kubernetes-Pf-*` headers',
    theirs: 'name the flow schema and priority level of a request',
    ours: 'are not sent',
    why: 'fairness is per user and has no flow schemas',
    matches: ({ at }) => at.startsWith('headers.x-kubernetes-pf-'),
  },
]
