export { type KubeconfigUpstreamOptions, upstreamFromKubeconfig } from './kubeconfig-upstream.ts'
export { type ListenPlace, LocalProxy, type LocalProxyOptions } from './local-proxy.ts'
export type { FilterOptions } from './request-filter.ts'
export type * from './upstream.ts'
