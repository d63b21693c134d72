import { createPublicKey, sign as cryptoSign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import {
  type Algorithm,
  type JsonObject,
  keyIdOf,
  signCompactJwsAsync,
  signingKey,
} from '../../jose/index.ts'

/** How add-on tokens may be signed; a key has exactly one way. */
export type AddonAlgorithm = Exclude<Algorithm, 'HS256'> | 'EdDSA'

/** A private key that signs add-on tokens, and how verifiers find its public half. */
export interface AddonSigningKey {
  readonly alg: AddonAlgorithm
  /** The SHA-256 of the public key, in base64url. */
  readonly kid: string
  readonly key: KeyObject
  /** The certificate of the key and those above it, in base64 DER; absent if the key is published as a JWK. */
  readonly x5c?: readonly string[]
}

/** Whose key signs at the moment; it may be another one after each rotation. */
export interface AddonSigner {
  readonly current: AddonSigningKey
}

/** A private key, ready to sign add-on tokens: RSA, P-256, P-384, P-521 or Ed25519. */
export function addonSigningKey(key: KeyObject, x5c?: readonly string[]): AddonSigningKey {
  const chain = x5c && { x5c }
  if (key.asymmetricKeyType === 'ed25519')
    return { alg: 'EdDSA', kid: keyIdOf(createPublicKey(key)), key, ...chain }
  const { alg, kid } = signingKey(key)
  if (alg === 'HS256') throw new TypeError('a private key cannot be a shared secret')
  return { alg, kid, key, ...chain }
}

/** Signs claims on the thread pool: an RSA signature takes long enough to hold up others. */
export async function signAddonToken(
  typ: string,
  claims: JsonObject,
  { alg, kid, key, x5c }: AddonSigningKey,
): Promise<string> {
  const header = { typ, kid, ...(x5c && { x5c }) }
  const payload = JSON.stringify(claims)
  if (alg !== 'EdDSA') return signCompactJwsAsync(header, payload, { alg, key })
  const input = `${segment(JSON.stringify({ alg, ...header }))}.${segment(payload)}`
  const signature = await signAside(null, Buffer.from(input, 'latin1'), key)
  return `${input}.${signature.toString('base64url')}`
}

const segment = (text: string): string => Buffer.from(text).toString('base64url')

const signAside = promisify(
  (
    digest: null,
    input: Uint8Array,
    key: KeyObject,
    done: (error: Error | null, signature: Buffer) => void,
  ) => cryptoSign(digest, input, key, done),
)
