import { ReasonedFailure } from '../client/discovery-failed.ts'

/** Why a cluster that was found gave no certificate; stable, for programs and tables. */
export type JoinReason =
  | 'token-refused'
  | 'request-forbidden'
  | 'request-refused'
  | 'cluster-unreachable'
  | 'node-name-taken'
  | 'approval-pending'
  | 'request-denied'
  | 'request-failed'
  | 'request-gone'
  | 'certificate-wrong'
  | 'aborted'

/** Joining ended without a certificate. */
export class JoinFailed extends ReasonedFailure<JoinReason> {}
