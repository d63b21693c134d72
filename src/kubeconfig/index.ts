export * from './change-cluster.ts'
export {
  type ClusterLocation,
  clusterAddresses,
  clusterLocation,
  problemOfLocation,
  withLocation,
} from './cluster-location.ts'
export * from './in-cluster.ts'
export * from './kubeconfig.ts'
export * from './kubeconfig-invalid.ts'
export * from './kubeconfig-lock.ts'
export * from './load-kubeconfig.ts'
export * from './load-kuberc.ts'
export * from './make-kubeconfig.ts'
export * from './merge-kubeconfigs.ts'
export * from './parse-kubeconfig.ts'
export * from './parse-yaml.ts'
export { renderKubeconfig } from './render-kubeconfig.ts'
export * from './resolve-context.ts'
export { writeKubeconfig } from './write-kubeconfig.ts'
