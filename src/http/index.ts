export * from './accept.ts'
export {
  type AddressTest,
  addressTest,
  isDialable,
  isLoopback,
  type PrivateAddresses,
} from './address-rules.ts'
export * from './ambiguous-headers.ts'
export { type AnswerHead, headOf } from './answer-head.ts'
export * from './body.ts'
export { discardUnreadBody } from './body.ts'
export { type AddonHome, homeCookie } from './cookies.ts'
export * from './hop-by-hop.ts'
export { isIdentityHeader } from './identity-headers.ts'
export { type ListenAddress, listenOnAll } from './listen.ts'
export * from './raw-headers.ts'
export { responseHead } from './response-head.ts'
export * from './server-limits.ts'
export type { TlsMaterial } from './tls-server.ts'
export * from './tls-server.ts'
export { announcedTrailers, keptTrailers, mayHaveTrailers, takesTrailers } from './trailers.ts'
export { judgeUpgrade, type UpgradeVerdict } from './upgrade-request.ts'
