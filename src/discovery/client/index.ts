export type { Cluster } from '../../kubeconfig/index.ts'
export * from '../join/index.ts'
export * from '../refresh/index.ts'
export { parseApiAddress } from './api-address.ts'
export { clusterInfoPath } from './cluster-info-map.ts'
export { type Discovery, discoverCluster } from './discover-cluster.ts'
export { DiscoveryFailed, type DiscoveryReason } from './discovery-failed.ts'
export {
  checkDiscoveryOrder,
  type DiscoveryMethod,
  type DiscoveryOrder,
  type DiscoveryParts,
} from './discovery-order.ts'
export { parseJoinToken } from './join-token.ts'
export type { DiscoveryProgress, Proof } from './progress.ts'
export { systemRoots } from './system-roots.ts'
