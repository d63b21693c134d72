export { chooseProxy, type Proxy, type ProxyEnv } from '../transport/proxy-choice.ts'
export { tunnelThrough } from '../transport/proxy-tunnel.ts'
