export * from './controllers/index.ts'
export * from './documents/index.ts'
export { ageColumn, column, nameColumn, wideColumn } from './kinds/columns.ts'
export { kindDefinitions } from './kinds/index.ts'
export type { Column, KindDefinition } from './kinds/kind-definition.ts'
export { firstServiceAddress, problemOfServiceRange } from './kinds/service-ip-allocator.ts'
export { openRegistry, type RegistryParts } from './open-registry.ts'
export { LocalClusterView, type Reviewer, serverUser } from './registry/local-cluster-view.ts'
export type { RegistryContext } from './registry/registry-context.ts'
export {
  answerReview,
  type IssuedToken,
  type IssueToken,
  type ReviewResource,
  type ReviewSources,
  reviewResources,
  type TokenRequestCall,
} from './reviews/index.ts'
export {
  type LiveEvent,
  type LiveResource,
  liveResourceHandler,
} from './serving/live-resource.ts'
export { noCustomKinds } from './serving/no-custom-kinds.ts'
export { defaultWatchLimits, type WatchLimits } from './serving/open-watch.ts'
export { ResourceApi, type ResourceApiParts, type ResourceHandler } from './serving/resource-api.ts'
export { tokenRequestHandler, tokenSubresource } from './serving/token-request.ts'
export { endpointIpProblems } from './validation/ip.ts'
