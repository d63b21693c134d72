export { type AnonymousOptions, anonymous, defaultAnonymousPaths } from './anonymous.ts'
export {
  type BearerTokens,
  bearerToken,
  bearerTokens,
  forApiAudiences,
  hasTokenProtocol,
  type TokenAuthenticator,
  withoutTokenProtocol,
} from './bearer-token.ts'
export { completeIdentity, firstOf, scopeDecision } from './chain.ts'
export {
  type ClientCertificateVerifier,
  clientCertificate,
  type RememberingVerifier,
  rememberVerified,
  type VerifiedClientCertificate,
} from './client-certificate.ts'
export { type Impersonate, type ImpersonationOptions, impersonation } from './impersonation.ts'
export {
  type FrontProxyHeaders,
  type RequestHeaderOptions,
  requestHeader,
  standardFrontProxyHeaders,
} from './request-header.ts'
export { defaultStaleness, type StalenessOptions } from './revocation-freshness.ts'
export {
  addRevocation,
  listRevocations,
  type ParsedRevocations,
  type Revocation,
  type RevocationType,
  removeRevocation,
} from './revocation-list.ts'
export { Revocations, type RevocationsOptions } from './revocations.ts'
export { addonIdentityTest, identityHeaderTest, withoutIdentity } from './strip-identity.ts'
export {
  openTokenFile,
  type StructuredToken,
  type TokenFile,
  type TokenFileOptions,
} from './token-file.ts'
