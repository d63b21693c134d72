export { type ListenPlace, LocalProxy, type LocalProxyOptions } from './local-proxy.ts'
export type { FilterOptions } from './request-filter.ts'
export {
  type ApiTransport,
  type KubeconfigTransportOptions,
  transportFromKubeconfig,
} from './transport.ts'
