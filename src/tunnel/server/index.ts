export { defaultRoutePermission } from './agent-claims.ts'
export { NoAgentAvailable } from './agent-registry.ts'
export type { AgentDescription } from './agent-session.ts'
export type { RevocationList } from './client-trust.ts'
export {
  type AgentPortConfig,
  type AgentTokens,
  configOfOptions,
  type FrontEndConfig,
  type TlsFileNames,
  type TunnelServerConfig,
} from './config.ts'
export {
  problemsOfTunnelServerOptions,
  type TunnelServerOptions,
  tunnelServerOptions,
} from './options/index.ts'
export { connectTcp, TargetUnreachable } from './reverse/connect-tcp.ts'
export {
  createTunnelServer,
  type ListeningPlaces,
  type TunnelServer,
  type TunnelServerParts,
} from './tunnel-server.ts'
