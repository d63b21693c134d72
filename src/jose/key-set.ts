import type { KnownAlgorithm } from './algorithms.ts'
import { type CompactJws, isVerifiedBy } from './compact-jws.ts'
import { KeyRefused, TokenRefused } from './errors.ts'
import type { VerificationKey } from './keys.ts'

type AnyKey = VerificationKey<KnownAlgorithm>

/** A key id, and its key once for each algorithm that it may be used with. */
export type KeysById = ReadonlyMap<string, readonly AnyKey[]>

/** Keys that verify tokens, by key id. */
export class KeySet {
  readonly keys: readonly AnyKey[]
  readonly byId: KeysById

  /** Duplicates are removed; throws KeyRefused for two different keys with one id. */
  constructor(keys: readonly AnyKey[]) {
    const byId = new Map<string, AnyKey[]>()
    for (const key of keys) {
      const known = byId.get(key.kid) ?? []
      if (known.some((other) => !other.key.equals(key.key)))
        throw new KeyRefused('two different keys have the same key id')
      if (!known.some(({ alg }) => alg === key.alg)) known.push(key)
      byId.set(key.kid, known)
    }
    this.byId = byId
    this.keys = [...byId.values()].flat()
  }

  /** The algorithms of the keys, sorted and without duplicates. */
  get algorithms(): KnownAlgorithm[] {
    return [...new Set(this.keys.map(({ alg }) => alg))].sort()
  }

  has(kid: string): boolean {
    return this.byId.has(kid)
  }

  /** The key that signed the token; all are tried for a token without `kid`. Throws TokenRefused. */
  verify(jws: CompactJws): AnyKey {
    const candidates = this.#candidates(jws.header.kid)
    if (candidates.length === 0)
      throw new TokenRefused('unknown-key', 'the token was signed with an unknown key')
    const usable = candidates.filter(({ alg }) => alg === jws.header.alg)
    if (usable.length === 0)
      throw new TokenRefused('bad-algorithm', "the token's algorithm is not that of its key")
    const signer = usable.find((key) => isVerifiedBy(jws, key))
    if (!signer) throw new TokenRefused('bad-signature', "the token's signature is invalid")
    return signer
  }

  #candidates(kid: string | undefined): readonly AnyKey[] {
    return kid === undefined ? this.keys : (this.byId.get(kid) ?? [])
  }
}
