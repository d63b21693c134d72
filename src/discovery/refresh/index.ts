export { FollowedCluster, type FollowedClusterOptions } from './followed-cluster.ts'
export { LocationLost, type LocationReason } from './location-lost.ts'
export { entryOf, type KeptEntry, refreshKubeconfig } from './refresh-kubeconfig.ts'
export { type Refreshed, type RefreshOrder, refreshLocation } from './refresh-location.ts'
