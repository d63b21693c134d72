import { SallyportError } from '../core/index.ts'

/** Why a certificate is not believed. */
export type CertificateRefusal =
  | 'UNKNOWN_AUTHORITY'
  | 'EXPIRED'
  | 'NOT_YET_VALID'
  | 'WRONG_USAGE'
  | 'WRONG_NAME'
  | 'WEAK_SIGNATURE'
  | 'PATH_TOO_LONG'
  | 'UNSUPPORTED_EXTENSION'
  | 'NO_COMMON_NAME'
  | 'MALFORMED'

/** A certificate that proves nothing. */
export class CertificateRefused extends SallyportError {
  readonly code = 'CERTIFICATE_REFUSED'
  /** `UNKNOWN_AUTHORITY` is the one that another bundle of CAs might see otherwise. */
  readonly why: CertificateRefusal

  constructor(why: CertificateRefusal, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.why = why
  }
}
