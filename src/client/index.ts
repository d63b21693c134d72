export * from './errors.ts'
export {
  type ChangeListener,
  createInformer,
  type Informer,
  type InformerOptions,
} from './informer.ts'
export {
  createKubeClient,
  type KubeClient,
  type KubeClientOptions,
  type WriteOptions,
} from './kube-client.ts'
export type { Change } from './object-cache.ts'
export { changeObject } from './objects.ts'
export { RemoteClusterView } from './remote-cluster-view.ts'
export type { Answer, ApiRequest } from './request.ts'
export type * from './transport.ts'
export {
  type ClusterContext,
  type HttpsTransportOptions,
  httpsTransport,
  transportFromKubeconfig,
} from './transport.ts'
