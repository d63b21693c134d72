export type { Cluster } from '../../kubeconfig/index.ts'
export * from '../join/index.ts'
export * from '../refresh/index.ts'
export { parseApiAddress, parseJoinToken } from './addresses.ts'
export { type Discovery, discoverCluster } from './discover-cluster.ts'
export { DiscoveryFailed, type DiscoveryReason } from './errors.ts'
export type { DiscoveryProgress, Proof } from './options.ts'
export {
  checkDiscoveryOrder,
  type DiscoveryMethod,
  type DiscoveryOrder,
  type DiscoveryParts,
} from './options.ts'
export { systemRoots } from './system-roots.ts'
export { clusterInfoPath } from './verify.ts'
