export { isKnownByClient } from './documents/entity-tag.ts'
export * from './documents/issuer-documents.ts'
export * from './documents/issuer-name.ts'
export type { IssuerNames } from './documents/issuer-names.ts'
export type { IssuerKeys, KeyState } from './keys/issuer-keys.ts'
export {
  beginRotation,
  type KeyKeeper,
  type KeyReport,
  readSigningKeys,
  replaceKeys,
} from './keys/rotate-keys.ts'
export { type KeyFiles, openStaticKeys } from './keys/static-keys.ts'
export { StoredKeys, type StoredKeysParts } from './keys/stored-keys.ts'
export { legacyServiceAccountTokens } from './tokens/legacy-tokens.ts'
export {
  serviceAccountTokens,
  type TokenAuthenticatorParts,
  type TokenUse,
} from './tokens/token-authenticator.ts'
export { createTokenIssuer, type TokenIssuerParts } from './tokens/token-issuer.ts'
