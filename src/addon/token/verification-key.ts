import { verify as cryptoVerify, type KeyObject } from 'node:crypto'
import { type CompactJws, isVerifiedBy, keyIdOf, verificationKey } from '../../jose/index.ts'
import type { AddonAlgorithm } from './signing-key.ts'

/** A public key that verifies add-on tokens, by its one algorithm. */
export interface AddonVerificationKey {
  readonly alg: AddonAlgorithm
  readonly kid: string
  readonly key: KeyObject
}

/** A public key, ready to verify add-on tokens; throws KeyRefused for kinds that are weak or unknown. */
export function addonVerificationKey(given: KeyObject): AddonVerificationKey {
  if (given.asymmetricKeyType === 'ed25519')
    return { alg: 'EdDSA', kid: keyIdOf(given), key: given }
  const { alg, kid, key } = verificationKey(given)
  if (alg === 'HS256') throw new TypeError('a public key cannot be a shared secret')
  return { alg, kid, key }
}

const ed25519Length = 64

/** Whether the token was signed with this key, by the key's own algorithm and no other. */
export function isAddonSignature(jws: CompactJws, { alg, key }: AddonVerificationKey): boolean {
  if (alg !== 'EdDSA') return isVerifiedBy(jws, { alg, key })
  return (
    jws.header.alg === alg &&
    jws.signature.length === ed25519Length &&
    cryptoVerify(null, jws.input, key, jws.signature)
  )
}
