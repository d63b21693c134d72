import { SallyportError } from '../core/index.ts'

/** Why a token or a key is not accepted; stable, for logs, metrics and tables. */
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

/** A token is refused; the message says why without repeating any of it. */
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
