export type { AddonUser } from '../token/claims.ts'
export { addonJwksPath } from '../token/claims.ts'
export type { AddonTokenVerifier } from '../token/verifier.ts'
export type { AccessLogLevel } from './access-log.ts'
export { type AudienceList, staticAudiences } from './audiences.ts'
export { openVerifier, type TrustHost, type TrustOptions } from './authenticate.ts'
export { problemsOfOutput, problemsOfPlaces } from './check-options.ts'
export {
  defaultGuardLimits,
  Guard,
  type GuardLimits,
  type GuardOptions,
  type PortPair,
} from './guard.ts'
export type { IdentityOutput } from './identity-output.ts'
export { type AddonGuard, createGuard, type MiddlewareOptions } from './middleware.ts'
export { GuardRefused } from './refusal.ts'
export { type ServiceAudienceOptions, ServiceAudiences } from './service-audiences.ts'
export type { Place } from './upstream.ts'
