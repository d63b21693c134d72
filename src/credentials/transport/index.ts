export { Connections, type ConnectionsOptions, type Identity } from './connections.ts'
export { createAgent } from './create-agent.ts'
export { createFetch, type FetchFunction } from './create-fetch.ts'
export { createTransport } from './create-transport.ts'
export { firstThatWorks } from './first-that-works.ts'
export type { Heartbeat } from './http2-heartbeat.ts'
export { refusalOf } from './identified-request.ts'
export { authorizationOf, withIdentity } from './identity-headers.ts'
export { pathBelow } from './path-below.ts'
export type { ProxyEnv } from './proxy-choice.ts'
export { readRefusedUpgrade } from './refused-upgrade.ts'
export { checkTlsMaterial } from './secure-context.ts'
export { ReplaceableTrust, staticTrust } from './static-trust.ts'
export * from './transport-errors.ts'
export type * from './transport-types.ts'
export {
  openUpgrade,
  requestUpgrade,
  type Upgraded,
  type UpgradeOutcome,
  type UpgradeRequest,
} from './upgrade.ts'
