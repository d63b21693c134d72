export * from './controllers/index.ts'
export * from './discovery/index.ts'
export type { Column, KindDefinition } from './kinds/define-kind.ts'
export { ageColumn, column, nameColumn, wideColumn } from './kinds/define-kind.ts'
export { kindDefinitions } from './kinds/index.ts'
export { firstServiceAddress, problemOfServiceRange } from './kinds/service/ip-allocator.ts'
export { LocalClusterView, type Reviewer, serverUser } from './registry/local-cluster-view.ts'
export { openRegistry, type RegistryParts } from './registry/open-registry.ts'
export type { QuotaLimits, QuotaStore } from './registry/quota.ts'
export { quotaAdmission } from './registry/quota-admission.ts'
export type { RegistryContext } from './registry/registry.ts'
export {
  answerReview,
  type IssuedToken,
  type IssueToken,
  type ReviewResource,
  type ReviewSources,
  reviewResources,
  type TokenRequestCall,
} from './reviews/index.ts'
export { RequestBodies, type RequestBodiesDeps } from './serving/request-bodies.ts'
export {
  checkVirtual,
  ResourceApi,
  type ResourceApiDeps,
  type ResourceHandler,
  type VirtualResource,
} from './serving/resource-api.ts'
export { tokenRequestHandler, tokenSubresource } from './serving/token-request.ts'
export {
  type LiveEvent,
  type LiveResource,
  liveResourceHandler,
  noCustomKinds,
} from './serving/virtual-resource.ts'
export { defaultWatchLimits, type WatchLimits } from './serving/watch.ts'
export { endpointIpProblems } from './validation/ip.ts'
