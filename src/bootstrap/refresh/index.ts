export { LocationLost, type LocationReason } from './errors.ts'
export { askLocation, type LocationAnswer, type LocationQuestion } from './fetch-location.ts'
export { FollowedCluster, type FollowedClusterOptions } from './follow-cluster.ts'
export {
  entryOf,
  type KeptEntry,
  type Refreshed,
  type RefreshOrder,
  refreshKubeconfig,
  refreshLocation,
} from './refresh-location.ts'
