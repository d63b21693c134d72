import {
  type Admission,
  ApiError,
  type Clock,
  type Kind,
  type KubeObject,
  type UserInfo,
  type WriteAttempt,
} from '../../core/index.ts'
import type { Store, StoredRecord } from '../../storage/index.ts'
import type { Allowances } from '../kinds/define-kind.ts'
import type { QuotaStore } from './quota.ts'

/** Server-side effects of one kind that need more than the object itself, such as address allocation. */
export interface WriteHook {
  readonly kind: Kind
  /** Completes a draft, in place, just before it is stored; returns what undoes it if storing fails. */
  beforeStore?(draft: KubeObject, stored: KubeObject | undefined): (() => void) | undefined
  /** Runs once the change is durable. */
  afterStore?(draft: KubeObject, stored: KubeObject | undefined): void
  afterDelete?(last: KubeObject): void
}

/** What every operation on stored objects works with. */
export interface RegistryContext {
  /** For reading. Objects are written through `quota`. */
  readonly store: Omit<Store, 'create' | 'update' | 'delete'>
  readonly quota: QuotaStore
  readonly clock: Clock
  readonly admissions: AdmissionChain
  readonly hooks: readonly WriteHook[]
  readonly newUid: () => string
}

/** Who writes, whether it is meant, and for how long they wait. */
export interface WriteOptions {
  readonly user: UserInfo
  readonly dryRun: boolean
  readonly signal: AbortSignal
  /** What this writer may write and others may not. */
  readonly allowances?: Allowances
}

/** An object as a write has left it, and its record if there is one: not after a dry run, nor when it is gone. */
export interface WriteResult {
  readonly object: KubeObject
  readonly record?: StoredRecord
}

/** The admission plugins, in their order. No write is admitted before they are set. */
export class AdmissionChain {
  #plugins: readonly Admission[] | undefined

  constructor(plugins?: readonly Admission[]) {
    this.#plugins = plugins
  }

  /** Writes are admitted from now on. */
  set(plugins: readonly Admission[]): void {
    if (this.#plugins) throw new Error('the admission plugins are set already')
    this.#plugins = plugins
  }

  /**
   * Runs every plugin; the first one that throws rejects the write. So does the end of the request: every write
   * passes here last, and a user may be revoked, or the request time out, while a body is decoded.
   */
  async admit(attempt: WriteAttempt, signal: AbortSignal): Promise<void> {
    if (!this.#plugins)
      throw new ApiError('ServiceUnavailable', 'the server is starting and accepts no writes yet', {
        details: { retryAfterSeconds: 1 },
      })
    for (const plugin of this.#plugins) await plugin(attempt, signal)
    signal.throwIfAborted()
  }
}
