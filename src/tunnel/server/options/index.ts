export { problemsOfTunnelServerOptions } from './options-problems.ts'
export { type TunnelServerOptions, tunnelServerOptions } from './server-options.ts'
export { parseSniRoute, type SniRoute } from './sni-route.ts'
export { minTlsVersion, opensslCiphers } from './tls-names.ts'
