export type { AddonUser } from '../token/addon-claims.ts'
export { addonJwksPath } from '../token/profile.ts'
export type { AddonTokenVerifier } from '../token/verifier.ts'
export type { AccessLogLevel } from './access-log.ts'
export { type AudienceList, staticAudiences } from './audiences.ts'
export { problemsOfOutput } from './check-output.ts'
export { problemsOfPlaces } from './check-places.ts'
export {
  defaultGuardLimits,
  Guard,
  type GuardLimits,
  type GuardOptions,
  type PortPair,
} from './guard.ts'
export type { IdentityOutput } from './identity-output.ts'
export { type AddonGuard, createGuard, type MiddlewareOptions } from './middleware.ts'
export { openVerifier, type TrustHost, type TrustOptions } from './open-verifier.ts'
export { GuardRefused } from './refusal.ts'
export { type ServiceAudienceOptions, ServiceAudiences } from './service-audiences.ts'
export type { Place } from './upstream.ts'
