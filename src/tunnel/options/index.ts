export { type TunnelAgentOptions, tunnelAgentOptions } from '../agent/options/index.ts'
