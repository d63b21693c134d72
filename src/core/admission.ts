import type { Kind, KubeObject } from './kube-object.ts'
import type { UserInfo } from './user-info.ts'

/** A write that is about to happen: rights are checked, the object is decoded, nothing is stored. */
export interface WriteAttempt {
  readonly user: UserInfo
  readonly operation: 'create' | 'update' | 'delete'
  readonly kind: Kind
  /** Empty for the object itself. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** The object as it would be stored; absent for delete. */
  readonly object?: KubeObject
  /** The object as it is stored; absent for create. */
  readonly oldObject?: KubeObject
  readonly dryRun: boolean
}

/** A last check on a write beyond authorization; throws an ApiError to refuse it. */
export type Admission = (attempt: WriteAttempt, signal: AbortSignal) => void | Promise<void>
