export { ApiServer, type ApiServerDeps, type Serving } from './api-server.ts'
export type {
  Feature,
  FeatureParts,
  FeatureSubresource,
  OpenContext,
  ServerLocation,
  StartContext,
} from './feature.ts'
export type { ProcessStats } from './metrics.ts'
export { type ServerOptions, serverOptions } from './options/index.ts'
export type { VersionInfo } from './routes/routes.ts'
export { clusterName } from './startup/admin-kubeconfig.ts'
export type { ServerProcess } from './startup/state.ts'
