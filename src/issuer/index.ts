export * from './documents/documents.ts'
export { isKnownByClient } from './documents/documents.ts'
export type { IssuerNames } from './documents/issuer-name.ts'
export * from './documents/issuer-name.ts'
export type { IssuerKeys, KeyState } from './keys/key-ring.ts'
export {
  beginRotation,
  type KeyKeeper,
  type KeyReport,
  keyRotationPath,
  readSigningKeys,
  replaceKeys,
  signingKeysPath,
} from './keys/rotation.ts'
export { type KeyFiles, openStaticKeys } from './keys/static-keys.ts'
export { StoredKeys, type StoredKeysParts } from './keys/stored-keys.ts'
export { oldSigningKeys } from './keys/stored-ring.ts'
export { legacyServiceAccountTokens } from './tokens/legacy-tokens.ts'
export {
  serviceAccountTokens,
  type TokenAuthenticatorParts,
  type TokenUse,
} from './tokens/token-authenticator.ts'
export { createTokenIssuer, type TokenIssuerParts } from './tokens/token-issuer.ts'
