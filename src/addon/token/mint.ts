import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/index.ts'
import {
  addonAudience,
  addonTokenIssuer,
  addonTokenLifetimeSeconds,
  addonTokenType,
} from './claims.ts'
import { type AddonSigner, signAddonToken } from './signing-key.ts'

/** Who is behind a request, and which Service may know. */
export interface AddonIdentity {
  /** The name exactly as the cluster authenticated it. */
  readonly user: string
  readonly uid?: string
  /** Told only to add-ons that ask for them. */
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  readonly namespace: string
  readonly service: string
  /** By which the audit log names the request. */
  readonly auditId?: string
}

/** Makes tokens that tell an add-on its user. */
export interface AddonTokenMinter {
  mint(identity: AddonIdentity): Promise<string>
}

/** What a minter is made of. */
export interface MinterOptions {
  readonly signer: AddonSigner
  readonly clock: Clock
  readonly issuer?: string
  readonly lifetimeSeconds?: number
}

/** A minter that signs every token anew. */
export function createAddonTokenMinter(options: MinterOptions): AddonTokenMinter {
  const { signer, clock, issuer = addonTokenIssuer } = options
  const { lifetimeSeconds = addonTokenLifetimeSeconds } = options
  return {
    mint: ({ user, uid, groups, extra, namespace, service, auditId }) => {
      const iat = Math.floor(clock.now() / 1000)
      const claims = {
        iss: issuer,
        sub: user,
        aud: [addonAudience(namespace, service)],
        exp: iat + lifetimeSeconds,
        iat,
        nbf: iat,
        jti: randomUUID(),
        ...(uid !== undefined && { uid }),
        ...(groups && { groups }),
        ...(extra && { 'k8s.extra': extra }),
        ...(auditId !== undefined && { cid: auditId }),
      }
      return signAddonToken(addonTokenType, claims, signer.current)
    },
  }
}

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
