export type { Clock, Logger } from '../../core/index.ts'
export type { PrivateAddresses } from '../../http/fetch/index.ts'
export {
  IssuerUnavailable,
  type RejectionCode,
  TokenRejected,
  type UnavailableCode,
} from './errors.ts'
export type { CheckOutcome, Explanation } from './explain-token.ts'
export {
  expressGuard,
  fastifyGuard,
  type GuardOptions,
  guardListener,
  type NotAllowed,
  type VerifiedRequest,
  verifyRequest,
} from './middleware.ts'
export type { SigningAlgorithm, VerifierOptions } from './options.ts'
export type { DocumentCredential, ProviderDocument as FetchedDocument } from './provider-keys.ts'
export {
  anyIssuer,
  createServiceAccountVerifier,
  createTokenVerifier,
  type TokenVerifier,
  type VerifiedServiceAccount,
  type VerifiedToken,
} from './token-verifier.ts'
