export { changeObject } from './change-object.ts'
export * from './client-errors.ts'
export type { Answer, ApiRequest } from './exchange.ts'
export { type Following, type FollowOptions, follow } from './follow.ts'
export { type HttpsTransportOptions, httpsTransport } from './https-transport.ts'
export {
  createKubeClient,
  type KubeClient,
  type KubeClientOptions,
  type WriteOptions,
} from './kube-client.ts'
export { type ClusterContext, transportFromKubeconfig } from './kubeconfig-transport.ts'
export type { Follower } from './picture.ts'
export { RemoteClusterView } from './remote-cluster-view.ts'
export type * from './transport.ts'
