export { firstThatWorks } from './addresses.ts'
export { agentFor, createAgent } from './agent.ts'
export { createTransport, pathBelow, refusalOf } from './authenticated-request.ts'
export { Connections, type ConnectionsOptions, type Identity } from './connections.ts'
export { checkTlsMaterial } from './dial.ts'
export * from './errors.ts'
export { createFetch, type FetchFunction } from './fetch.ts'
export type { Heartbeat } from './http2-body.ts'
export type { ProxyEnv } from './outbound-proxy.ts'
export { authorizationOf, withIdentity, withLowerCaseNames } from './send.ts'
export type * from './types.ts'
export { ReplaceableTrust, staticTrust } from './types.ts'
export {
  openUpgrade,
  readRefusedUpgrade,
  requestUpgrade,
  type Upgraded,
  type UpgradeOutcome,
  type UpgradeRequest,
} from './upgrade.ts'
