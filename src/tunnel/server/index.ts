export type { AgentDescription } from './agent-session.ts'
export { NoAgentAvailable } from './errors.ts'
export type { RevocationList } from './listening/client-trust.ts'
export {
  problemsOfTunnelServerOptions,
  type TunnelServerOptions,
  tunnelServerOptions,
} from './options/index.ts'
export { connectTcp, TargetUnreachable } from './reverse/connect-tcp.ts'
export {
  type AgentPortConfig,
  type AgentTokens,
  configOfOptions,
  type FrontEndConfig,
  type TlsFileNames,
  type TunnelServerConfig,
} from './server-config.ts'
export {
  createTunnelServer,
  type ListeningPlaces,
  type TunnelServer,
  type TunnelServerParts,
} from './tunnel-server.ts'
