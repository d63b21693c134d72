export * from './documents/documents.ts'
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
export { StoredKeys, type StoredKeysDeps } from './keys/stored-keys.ts'
export { oldSigningKeys } from './keys/stored-ring.ts'
export { legacyServiceAccountTokens } from './tokens/legacy-tokens.ts'
export {
  serviceAccountTokens,
  type TokenAuthenticatorDeps,
  type TokenUse,
} from './tokens/token-authenticator.ts'
export { createTokenIssuer, type TokenIssuerDeps } from './tokens/token-issuer.ts'
