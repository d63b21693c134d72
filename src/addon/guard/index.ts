export { type AudienceList, staticAudiences } from './audiences.ts'
export {
  defaultGuardLimits,
  Guard,
  type GuardLimits,
  type GuardOptions,
  type PortPair,
} from './guard.ts'
export { type ServiceAudienceOptions, ServiceAudiences } from './service-audiences.ts'
