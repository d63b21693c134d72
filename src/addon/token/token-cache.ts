import type { Clock } from '../../core/index.ts'
import type { AddonIdentity, AddonTokenMinter } from './mint.ts'
import { addonTokenLifetimeSeconds } from './profile.ts'
import type { AddonSigner } from './signing-key.ts'

/** What a cache of tokens is made of. */
export interface TokenCacheOptions {
  readonly minter: AddonTokenMinter
  readonly signer: AddonSigner
  readonly clock: Clock
  /** As long as the minter's. */
  readonly lifetimeSeconds?: number
  readonly capacity?: number
}

interface Kept {
  readonly token: Promise<string>
  readonly since: number
}

/**
 * Hands out a token again to the same user for the same Service while more than a third of its life is left, and
 * lets all who ask at the same time wait for one signature. It saves signatures and decides nothing: whoever asks
 * has authenticated and authorized the request before. Tokens that are shared carry no audit id.
 */
export class AddonTokenCache implements AddonTokenMinter {
  readonly #options: TokenCacheOptions
  readonly #freshMs: number
  readonly #capacity: number
  // Two generations: when the young one is full it becomes the old one, and the old one is dropped.
  #young = new Map<string, Kept>()
  #old = new Map<string, Kept>()

  constructor(options: TokenCacheOptions) {
    const { lifetimeSeconds = addonTokenLifetimeSeconds, capacity = 10_000 } = options
    this.#options = options
    this.#freshMs = (lifetimeSeconds * 1000 * 2) / 3
    this.#capacity = Math.max(1, Math.ceil(capacity / 2))
  }

  /** Tokens that are kept, dead ones included. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  mint(identity: AddonIdentity): Promise<string> {
    const { auditId: _, ...shared } = identity
    const key = this.#keyOf(shared)
    const known = this.#young.get(key) ?? this.#old.get(key)
    if (known && this.#isFresh(known)) return known.token
    return this.#mintAndKeep(key, shared)
  }

  #mintAndKeep(key: string, identity: AddonIdentity): Promise<string> {
    const { minter, clock } = this.#options
    const kept = { token: minter.mint(identity), since: clock.now() }
    this.#old.delete(key)
    if (this.#young.size >= this.#capacity) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, kept)
    kept.token.catch(() => {
      if (this.#young.get(key) === kept) this.#young.delete(key)
    })
    return kept.token
  }

  /** Not before its time either: a clock that was put back would make it last. */
  #isFresh({ since }: Kept): boolean {
    const age = this.#options.clock.now() - since
    return age >= 0 && age < this.#freshMs
  }

  #keyOf({ user, uid, groups, extra, namespace, service }: AddonIdentity): string {
    const { kid } = this.#options.signer.current
    return JSON.stringify([user, uid, groups, extra, namespace, service, kid])
  }
}
