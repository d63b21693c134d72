import type { KnownAlgorithm } from './algorithms.ts'
import { type CompactJws, isVerifiedBy } from './compact-jws.ts'
import { KeyRefused, TokenRefused } from './errors.ts'
import type { VerificationKey } from './keys.ts'

type AnyKey = VerificationKey<KnownAlgorithm>

/** The keys that may have signed a token. */
export class KeySet {
  readonly keys: readonly AnyKey[]
  readonly #byId: ReadonlyMap<string, readonly AnyKey[]>

  /** The same key twice counts once for each algorithm; two keys under one id are refused. */
  constructor(keys: readonly AnyKey[]) {
    const byId = new Map<string, AnyKey[]>()
    for (const key of keys) {
      const known = byId.get(key.kid) ?? []
      if (known.some((other) => !other.key.equals(key.key)))
        throw new KeyRefused('two different keys have the same key id')
      if (!known.some(({ alg }) => alg === key.alg)) known.push(key)
      byId.set(key.kid, known)
    }
    this.#byId = byId
    this.keys = [...byId.values()].flat()
  }

  /** The algorithms of the keys, each once, sorted. */
  get algorithms(): KnownAlgorithm[] {
    return [...new Set(this.keys.map(({ alg }) => alg))].sort()
  }

  has(kid: string): boolean {
    return this.#byId.has(kid)
  }

  /** The key that signed the token; a token that names none is tried with all. Throws TokenRefused. */
  verify(jws: CompactJws): AnyKey {
    const candidates = this.#candidates(jws.header.kid)
    if (candidates.length === 0)
      throw new TokenRefused('unknown-key', 'the token was signed with a key that is not known')
    const usable = candidates.filter(({ alg }) => alg === jws.header.alg)
    if (usable.length === 0)
      throw new TokenRefused('bad-algorithm', "the token's algorithm is not the one of its key")
    const signer = usable.find((key) => isVerifiedBy(jws, key))
    if (!signer) throw new TokenRefused('bad-signature', "the token's signature is wrong")
    return signer
  }

  #candidates(kid: string | undefined): readonly AnyKey[] {
    return kid === undefined ? this.keys : (this.#byId.get(kid) ?? [])
  }
}
