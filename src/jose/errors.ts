import { SallyportError } from '../core/index.ts'

/** Why a token was rejected; stable, for logs and metrics. */
export type RefusalCode =
  | 'malformed'
  | 'too-large'
  | 'bad-header'
  | 'bad-algorithm'
  | 'unknown-key'
  | 'bad-signature'
  | 'bad-claims'
  | 'not-yet-valid'
  | 'expired'
  | 'lives-too-long'

/** A token was rejected. The message has the reason and no part of the token. */
export class TokenRefused extends SallyportError {
  readonly code: RefusalCode

  constructor(code: RefusalCode, message: string) {
    super(message)
    this.code = code
  }
}

/** A key cannot be used to sign or to verify tokens. */
export class KeyRefused extends SallyportError {
  readonly code = 'KEY_REFUSED'
}
