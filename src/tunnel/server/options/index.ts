export { type TunnelServerOptions, tunnelServerOptions } from './options.ts'
export { problemsOfTunnelServerOptions } from './validate.ts'
export {
  minTlsVersion,
  opensslCiphers,
  parseLabels,
  parseSniRoute,
  type SniRoute,
} from './values.ts'
