export type { Connect } from './connect-server.ts'
export { createTunnelAgent } from './create-tunnel-agent.ts'
export type { Resolve } from './dial-target.ts'
export {
  problemsOfTunnelAgentOptions,
  type TunnelAgentOptions,
  tunnelAgentOptions,
  tunnelAgentOptionValues,
} from './options/index.ts'
export type { TunnelAgent, TunnelAgentParts } from './tunnel-agent.ts'
