export {
  problemsOfTunnelAgentOptions,
  type TunnelAgentOptions,
  tunnelAgentOptions,
  tunnelAgentOptionValues,
} from './options/index.ts'
export type { Connect } from './servers/connect-server.ts'
export type { Resolve } from './targets/dial-target.ts'
export type { TunnelAgent, TunnelAgentParts } from './tunnel-agent.ts'
export { createTunnelAgent } from './tunnel-agent.ts'
