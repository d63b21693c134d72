import { SallyportError } from '../../core/index.ts'
import { type RefusalCode, TokenRefused } from '../../jose/index.ts'

/** Why an add-on token is not accepted; stable, for answers, logs and metrics. */
export type AddonRefusal =
  | RefusalCode
  | 'wrong-type'
  | 'wrong-issuer'
  | 'wrong-audience'
  | 'bad-signer'
  | 'keys-unavailable'

/** An add-on token is refused; the message says why without repeating any of it. */
export class AddonTokenRefused extends SallyportError {
  readonly code: AddonRefusal

  constructor(code: AddonRefusal, message: string) {
    super(message)
    this.code = code
  }

  /** What the strict reader of tokens found, as a refusal of this kind; any other error stays what it is. */
  static from(error: unknown): unknown {
    return error instanceof TokenRefused ? new AddonTokenRefused(error.code, error.message) : error
  }
}
