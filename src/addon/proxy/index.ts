export type { ProxyLimits } from './limits/index.ts'
export { ServiceProxy, type UpgradingClient } from './service-proxy.ts'
export type { ServiceProxyParts } from './service-proxy-parts.ts'
export type { ProxiedResource } from './target/index.ts'
