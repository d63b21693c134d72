import { SallyportError } from '../../core/index.ts'
import { type RefusalCode, TokenRefused } from '../../jose/index.ts'

/** Why a token was rejected; stable, for logs, metrics and tests. */
export type RejectionCode =
  | RefusalCode
  | 'missing'
  | 'wrong-purpose'
  | 'wrong-issuer'
  | 'wrong-audience'

/** A token was rejected. The message may quote issuer and audiences, never the token. Respond with 401. */
export class TokenRejected extends SallyportError {
  readonly code: RejectionCode

  constructor(code: RejectionCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
  }
}

/** Why the documents of an issuer cannot be fetched or used. */
export type UnavailableCode =
  | 'unreachable'
  | 'untrusted-certificate'
  | 'blocked-address'
  | 'too-slow'
  | 'redirected'
  | 'bad-status'
  | 'too-large'
  | 'bad-document'

/** A token cannot be verified because the keys of its issuer are unavailable. Respond with 503. */
export class IssuerUnavailable extends SallyportError {
  readonly code: UnavailableCode

  constructor(code: UnavailableCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
  }
}

/** Turns errors of the parser into errors of this public entry. */
export const asRejection = (error: unknown): unknown =>
  error instanceof TokenRefused
    ? new TokenRejected(error.code, error.message, { cause: error })
    : error
