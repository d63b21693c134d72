export { type AnonymousOptions, anonymous, defaultAnonymousPaths } from './anonymous.ts'
export {
  type BearerTokens,
  bearerToken,
  bearerTokens,
  forApiAudiences,
  type TokenAuthenticator,
} from './bearer-token.ts'
export { firstOf, withBaseGroup } from './chain.ts'
export { addRevocation, listRevocations, removeRevocation } from './change-revocations.ts'
export {
  type ClientCertificateVerifier,
  clientCertificate,
  type RememberingVerifier,
  rememberVerified,
  type VerifiedClientCertificate,
} from './client-certificate.ts'
export { identityHeaderTest, withoutIdentity } from './identity-headers.ts'
export { type Impersonate, type ImpersonationOptions, impersonation } from './impersonation.ts'
export {
  type FrontProxyHeaders,
  type RequestHeaderOptions,
  requestHeader,
  standardFrontProxyHeaders,
} from './request-header.ts'
export {
  type ParsedRevocations,
  type Revocation,
  type RevocationType,
  revocationListKey,
} from './revocation-list.ts'
export { defaultSight, type SightOptions } from './revocation-sight.ts'
export { Revocations, type RevocationsOptions } from './revocations.ts'
export { scopeDecision } from './scope.ts'
export {
  openTokenFile,
  type StructuredToken,
  type TokenFile,
  type TokenFileOptions,
} from './token-file.ts'
export { withoutTokenProtocol } from './websocket-token.ts'
