import type { Clock } from '../../core/index.ts'
import {
  type CompactJws,
  parseCompactJws,
  type Verdict,
  VerifiedTokenCache,
} from '../../jose/index.ts'
import {
  AddonTokenRefused,
  type AddonUser,
  addonTokenIssuer,
  addonTokenType,
  readAddonClaims,
} from './claims.ts'
import { RecentTokens } from './recent-tokens.ts'
import {
  type AddonKeySource,
  type AddonVerificationKey,
  isAddonSignature,
} from './verification-keys.ts'

/** What a verifier believes. */
export interface AddonVerifierOptions {
  /** Asked in order; the first that knows a token's key decides. */
  readonly keys: readonly AddonKeySource[]
  readonly clock: Clock
  readonly issuer?: string
  /** How far the clocks of API server and Pod may differ. */
  readonly leewaySeconds?: number
  /** No token may be made for longer. */
  readonly longestSeconds?: number
  /** Verified tokens that are remembered. */
  readonly cacheCapacity?: number
}

interface Audiences {
  has(audience: string): boolean
}

/** Not part of what is remembered: Services come and go while a token lives. */
function forOneOf(audiences: Audiences, user: AddonUser): AddonUser {
  if (audiences.has(user.audience)) return user
  throw new AddonTokenRefused('wrong-audience', 'the token is for another Service')
}

const knownMembers = new Set(['alg', 'typ', 'kid', 'x5c'])

/** Verifies add-on tokens; one that comes again costs a hash. */
export class AddonTokenVerifier {
  readonly #options: Required<Omit<AddonVerifierOptions, 'cacheCapacity'>>
  readonly #cache: VerifiedTokenCache<AddonUser>
  readonly #recent: RecentTokens<AddonUser>

  constructor(options: AddonVerifierOptions) {
    const { clock, cacheCapacity = 10_000 } = options
    this.#options = { issuer: addonTokenIssuer, leewaySeconds: 10, longestSeconds: 300, ...options }
    this.#cache = new VerifiedTokenCache({ clock, capacity: cacheCapacity })
    this.#recent = new RecentTokens(clock)
    for (const source of options.keys) source.onLess?.(() => this.#forget())
  }

  /** Why every token would be refused at the moment, if so. */
  get problem(): AddonKeySource['problem'] {
    const { keys } = this.#options
    return keys.length > 0 && keys.every(({ problem }) => problem) ? keys[0]?.problem : undefined
  }

  /** The user of a token that is for one of the audiences, at once if it was here just now; throws AddonTokenRefused. */
  verify(token: string, audiences: Audiences): AddonUser | Promise<AddonUser> {
    const recent = this.#recent.get(token)
    return recent ? forOneOf(audiences, recent) : this.#lookUp(token, audiences)
  }

  async #lookUp(token: string, audiences: Audiences): Promise<AddonUser> {
    const since = this.#recent.generation
    const user = await this.#cache.get(token, [], () => this.#verify(token))
    this.#recent.keep(token, user, { since, until: user.expiresAt })
    return forOneOf(audiences, user)
  }

  #forget(): void {
    this.#cache.clear()
    this.#recent.clear()
  }

  async #verify(token: string): Promise<Verdict<AddonUser>> {
    const { clock, issuer, leewaySeconds, longestSeconds } = this.#options
    try {
      const jws = parseCompactJws(token)
      checkHeader(jws)
      if (!isAddonSignature(jws, await this.#keyOf(jws)))
        throw new AddonTokenRefused('bad-signature', "the token's signature is wrong")
      const rules = { nowMs: clock.now(), issuer, leewaySeconds, longestSeconds }
      const value = readAddonClaims(jws.payload, rules)
      return { value, until: value.expiresAt + leewaySeconds * 1000 }
    } catch (error) {
      throw AddonTokenRefused.from(error)
    }
  }

  /** A source that refuses has not the last word: another may know the same key by another way. */
  async #keyOf(jws: CompactJws): Promise<AddonVerificationKey> {
    let refusal: Error | undefined
    for (const source of this.#options.keys) {
      try {
        const found = source.find(jws)
        const key = found instanceof Promise ? await found : found
        if (key) return fitting(key, jws)
      } catch (error) {
        if (!(error instanceof Error)) throw error
        refusal ??= error
      }
    }
    if (refusal) throw refusal
    throw new AddonTokenRefused('unknown-key', 'the token was signed with a key that is not known')
  }
}

function checkHeader({ header }: CompactJws): void {
  if (header.typ !== addonTokenType)
    throw new AddonTokenRefused('wrong-type', 'the token is of another kind')
  // Nothing that we know of needs more, and each of the others has misled somebody.
  if (!Object.keys(header.members).every((name) => knownMembers.has(name)))
    throw new AddonTokenRefused('bad-header', "the token's header says more than it may")
}

function fitting(key: AddonVerificationKey, { header }: CompactJws): AddonVerificationKey {
  if (key.alg === header.alg) return key
  throw new AddonTokenRefused('bad-algorithm', "the token's algorithm is not the one of its key")
}
