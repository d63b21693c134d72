import { CommandFailed } from '../../core/index.ts'

/** Why a cluster was not found or not trusted; stable, for programs and tables. */
export type DiscoveryReason =
  | 'bad-arguments'
  | 'unreachable'
  | 'not-ready'
  | 'not-a-cluster'
  | 'auth-refused'
  | 'forbidden'
  | 'token-unknown'
  | 'signature-absent'
  | 'signature-wrong'
  | 'document-unreadable'
  | 'document-invalid'
  | 'pin-mismatch'
  | 'server-not-trusted'
  | 'second-fetch-differs'
  | 'advertised-address-unreachable'
  | 'deadline-exceeded'
  | 'aborted'

/** What is told of a failure beside its sentence. */
export interface FailureFacts {
  /** What the user can do about it. */
  readonly hint: string
  /** The same may work a moment later, since clients and servers start in any order. */
  readonly mayPass?: boolean
  /** If it passes at all, it passes soon. */
  readonly passesSoon?: boolean
  /** The server asks not to come back before. */
  readonly retryAfterMs?: number
  /** The pins of the certificates that were seen, where they are what it is about. */
  readonly pinsSeen?: readonly string[]
  readonly cause?: unknown
}

/** A failure with a reason for programs, and a sentence and a next step for people. */
export abstract class ReasonedFailure<Reason extends string> extends CommandFailed {
  readonly reason: Reason
  readonly mayPass: boolean
  readonly passesSoon: boolean
  readonly retryAfterMs: number

  constructor(reason: Reason, message: string, facts: FailureFacts) {
    super(reason.toUpperCase().replaceAll('-', '_'), message, facts)
    this.reason = reason
    this.mayPass = facts.mayPass ?? false
    this.passesSoon = facts.passesSoon ?? false
    this.retryAfterMs = facts.retryAfterMs ?? 0
  }
}

/** Discovery ended without a cluster to trust. */
export class DiscoveryFailed extends ReasonedFailure<DiscoveryReason> {
  readonly pinsSeen: readonly string[]

  constructor(reason: DiscoveryReason, message: string, facts: FailureFacts) {
    super(reason, message, facts)
    this.pinsSeen = facts.pinsSeen ?? []
  }
}

/** A call that cannot work, found before anything was sent or read. */
export const badArguments = (message: string, hint: string): DiscoveryFailed =>
  new DiscoveryFailed('bad-arguments', message, { hint })
