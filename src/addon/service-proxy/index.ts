export { type ProxyLimits } from './limits.ts'
export { ServiceProxy } from './service-proxy.ts'
export { liveSessions, sessionEntry } from './session-resource.ts'
export { TargetCache } from './target-cache.ts'
