export * from './accept.ts'
export {
  addonHost,
  hashedHostStem,
  isHashedAddonHost,
  readAddonHost,
  schemeOfPortLabel,
} from './addon-host.ts'
export {
  type AddressTest,
  addressTest,
  anyAddress,
  isDialable,
  isLoopback,
  isPlainLoopback,
  isPlatformAddress,
  type PrivateAddresses,
  rangeTest,
} from './address-rules.ts'
export * from './body.ts'
export { discardUnreadBody } from './body.ts'
export { type BodyProblem, endByBodyProblem, watchBody } from './body-limits.ts'
export { sandboxPolicy, withoutSandbox } from './content-sandbox.ts'
export { type AddonHome, homeCookie } from './cookies.ts'
export { type Meter, type Meters, metered } from './copy-stream.ts'
export { checkDecidingHeaders, checkTrailers } from './deciding-headers.ts'
export { gatherChunks } from './gather-chunks.ts'
export * from './headers.ts'
export { allowedHeaders, isIdentityHeader, rememberByName } from './identity-headers.ts'
export { type ListenAddress, listenOnAll } from './listen.ts'
export { isOriginHeader } from './origin-headers.ts'
export {
  cleanPath,
  decodePath,
  isClimbing,
  type RequestTarget,
  splitTarget,
  targetProblem,
} from './request-target.ts'
export * from './server-limits.ts'
export {
  EventfulHttp2Response,
  EventfulServerResponse,
  holdResponse,
  onHeaders,
  onUnread,
  reportUnread,
  waitForClient,
} from './server-response.ts'
export type { TlsMaterial } from './tls-server.ts'
export * from './tls-server.ts'
export { announcedTrailers, keptTrailers, mayHaveTrailers, takesTrailers } from './trailers.ts'
export {
  judgeUpgrade,
  type UpgradeVerdict,
  type UpgradingClient,
  upgradingClient,
} from './upgrade.ts'
