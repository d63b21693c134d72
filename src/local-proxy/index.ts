export { type ListenPlace, LocalProxy, type LocalProxyOptions } from './local-proxy.ts'
export type * from './proxy-upstream.ts'
export type { FilterOptions } from './request-filter.ts'
export { type KubeconfigUpstreamOptions, upstreamFromKubeconfig } from './upstream.ts'
