export type { ProxyLimits } from './limits/index.ts'
export { ServiceProxy } from './service-proxy.ts'
export { liveSessions, sessionEntry } from './session/index.ts'
export { type ProxiedResource, WatchedTargets } from './target/index.ts'
