export { ApiServer, type ApiServerParts, type Serving } from './api-server.ts'
export { clusterName } from './composition/admin-kubeconfig.ts'
export type { ServerProcess } from './composition/state.ts'
export type {
  Feature,
  FeatureContext,
  FeatureParts,
  FeatureSubresource,
  ServerLocation,
} from './feature.ts'
export type { ProcessStats } from './metrics/server-metrics.ts'
export { type ServerOptions, serverOptions } from './options/index.ts'
export type { VersionInfo } from './paths/plain-documents.ts'
