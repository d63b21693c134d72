export { type TunnelAgentOptions, tunnelAgentOptions } from '../agent/options/index.ts'
export { tunnelServerOptions } from '../server/options/index.ts'
