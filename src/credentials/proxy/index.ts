export {
  chooseProxy,
  type Proxy,
  type ProxyEnv,
  tunnelThrough,
} from '../transport/outbound-proxy.ts'
