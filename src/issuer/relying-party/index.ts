export type { Clock, Logger } from '../../core/index.ts'
export type { PrivateAddresses } from './address-rules.ts'
export type { CheckOutcome, Explanation } from './explain-token.ts'
export type { DocumentCredential, FetchedDocument } from './fetch-document.ts'
export { type GuardOptions, type NotAllowed, verifyRequest } from './guard-request.ts'
export { expressGuard, fastifyGuard, guardListener, type VerifiedRequest } from './middleware.ts'
export {
  IssuerUnavailable,
  type RejectionCode,
  TokenRejected,
  type UnavailableCode,
} from './relying-party-errors.ts'
export {
  anyIssuer,
  createServiceAccountVerifier,
  createTokenVerifier,
  type TokenVerifier,
  type VerifiedServiceAccount,
  type VerifiedToken,
} from './token-verifier.ts'
export type { SigningAlgorithm, VerifierOptions } from './verifier-options.ts'
