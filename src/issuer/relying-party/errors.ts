import { SallyportError } from '../../core/index.ts'
import { type RefusalCode, TokenRefused } from '../../jose/index.ts'

/** Why a token is not accepted; stable, for logs, metrics and tests. */
export type RejectionCode =
  | RefusalCode
  | 'missing'
  | 'wrong-purpose'
  | 'wrong-issuer'
  | 'wrong-audience'

/** A token is not accepted; the message says why, quotes its issuer and audience at most, and never the token. Answer 401. */
export class TokenRejected extends SallyportError {
  readonly code: RejectionCode

  constructor(code: RejectionCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
  }
}

/** Why the documents of an issuer cannot be had or used. */
export type UnavailableCode =
  | 'unreachable'
  | 'untrusted-certificate'
  | 'blocked-address'
  | 'too-slow'
  | 'redirected'
  | 'bad-status'
  | 'too-large'
  | 'bad-document'

/** Nothing can be said about a token, because its issuer's keys cannot be had. Answer 503. */
export class IssuerUnavailable extends SallyportError {
  readonly code: UnavailableCode

  constructor(code: UnavailableCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
  }
}

/** A refusal of the strict reader in the words of this face; everything else as it is. */
export const asRejection = (error: unknown): unknown =>
  error instanceof TokenRefused
    ? new TokenRejected(error.code, error.message, { cause: error })
    : error
