export {
  type ClusterLocation,
  clusterAddresses,
  clusterLocation,
  problemOfLocation,
  withLocation,
} from './cluster-location.ts'
export * from './edit.ts'
export * from './in-cluster.ts'
export * from './kubeconfig.ts'
export * from './kuberc.ts'
export * from './load.ts'
export * from './parse.ts'
export * from './resolve-context.ts'
export * from './write.ts'
