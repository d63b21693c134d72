import type { Clock } from '../../core/index.ts'
import {
  type CompactJws,
  parseCompactJws,
  type Verified,
  VerifiedTokenCache,
} from '../../jose/index.ts'
import {
  AddonTokenRefused,
  type AddonUser,
  addonTokenIssuer,
  addonTokenType,
  readAddonClaims,
} from './claims.ts'
import {
  defaultLeewaySeconds,
  defaultMaxCachedTokens,
  defaultMaxLifetimeSeconds,
  recentTokenMs,
} from './limits.ts'
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

  constructor(options: AddonVerifierOptions) {
    const { clock, cacheCapacity = defaultMaxCachedTokens } = options
    this.#options = {
      issuer: addonTokenIssuer,
      leewaySeconds: defaultLeewaySeconds,
      longestSeconds: defaultMaxLifetimeSeconds,
      ...options,
    }
    this.#cache = new VerifiedTokenCache({
      clock,
      maxTokens: cacheCapacity,
      recentMs: recentTokenMs,
    })
    for (const source of options.keys) source.onRemoved?.(() => this.#cache.clear())
  }

  /** Why every token would be refused at the moment, if so. */
  get problem(): AddonKeySource['problem'] {
    const { keys } = this.#options
    return keys.length > 0 && keys.every(({ problem }) => problem) ? keys[0]?.problem : undefined
  }

  /** The user of a token that is for one of the audiences, at once if it is cached; throws AddonTokenRefused. */
  verify(token: string, audiences: Audiences): AddonUser | Promise<AddonUser> {
    const found = this.#cache.get(token, [], () => this.#verify(token))
    return found instanceof Promise
      ? found.then((user) => forOneOf(audiences, user))
      : forOneOf(audiences, found)
  }

  async #verify(token: string): Promise<Verified<AddonUser>> {
    const { clock, issuer, leewaySeconds, longestSeconds } = this.#options
    try {
      const jws = parseCompactJws(token)
      checkHeader(jws)
      if (!isAddonSignature(jws, await this.#keyOf(jws)))
        throw new AddonTokenRefused('bad-signature', "the token's signature is invalid")
      const rules = {
        nowMs: clock.now(),
        issuer,
        leewaySeconds,
        maxLifetimeSeconds: longestSeconds,
      }
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
    throw new AddonTokenRefused('unknown-key', 'the token was signed with an unknown key')
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
  throw new AddonTokenRefused('bad-algorithm', "the token's algorithm is not that of its key")
}
