import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../core/index.ts'
import { defaultMaxCacheAgeMs, defaultMaxCachedTokens, maxRecentTokens } from './limits.ts'

/** The result of a successful verification. */
export interface Verified<Value> {
  readonly value: Value
  /** Milliseconds since 1970 from which on it must not be used. */
  readonly until: number
}

interface CachedToken<Value> extends Verified<Value> {
  readonly since: number
}

interface RecentToken<Value> extends CachedToken<Value> {
  readonly token: string
  readonly audiences: readonly string[]
}

/** What is cached and for how long. */
export interface TokenCacheOptions {
  readonly clock: Clock
  readonly maxTokens?: number
  /** Maximum age of an entry, whatever the expiry of its token. */
  readonly maxAgeMs?: number
  /**
   * Keeps the latest tokens as they are for this long, so that they are found without a hash: a page loads with dozens
   * of requests that send the same one. If absent, no token is in memory.
   */
  readonly recentMs?: number
}

/** The end of a signature: unguessable, so no two tokens share it by chance or by intent. */
const recentKeyLength = 24

/**
 * Caches verified tokens, so that a token that is sent again costs one hash.
 * Only valid tokens are cached: no number of invalid ones evicts them.
 */
export class VerifiedTokenCache<Value> {
  readonly #hashKey = randomBytes(32)
  readonly #clock: Clock
  readonly #maxPerGeneration: number
  readonly #maxAgeMs: number
  readonly #recentMs: number
  readonly #verifying = new Map<string, Promise<Value>>()
  // Two generations: a full young one becomes the old one, and the old one is dropped.
  #young = new Map<string, CachedToken<Value>>()
  #old = new Map<string, CachedToken<Value>>()
  #recent = new Map<string, RecentToken<Value>>()

  constructor({
    clock,
    maxTokens = defaultMaxCachedTokens,
    maxAgeMs = defaultMaxCacheAgeMs,
    recentMs = 0,
  }: TokenCacheOptions) {
    this.#clock = clock
    this.#maxPerGeneration = Math.max(1, Math.ceil(maxTokens / 2))
    this.#maxAgeMs = maxAgeMs
    this.#recentMs = recentMs
  }

  /** The value of a token for these audiences, at once if cached. `verify` runs once for all callers that wait; it throws for an invalid token. */
  get(
    token: string,
    audiences: readonly string[],
    verify: () => Promise<Verified<Value>>,
  ): Value | Promise<Value> {
    const recent = this.#findRecent(token, audiences)
    if (recent) return recent.value
    const key = this.#keyOf(token, audiences)
    const cached = this.#find(key)
    if (!cached) return this.#verifyOnce(key, { token, audiences }, verify)
    this.#addRecent({ ...cached, token, audiences })
    return cached.value
  }

  /** Removes everything, for example because the keys have changed. */
  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#recent.clear()
    this.#verifying.clear()
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  #findRecent(token: string, audiences: readonly string[]): RecentToken<Value> | undefined {
    if (this.#recentMs === 0) return undefined
    const recent = this.#recent.get(token.slice(-recentKeyLength))
    const isSame =
      recent?.token === token &&
      recent.audiences.length === audiences.length &&
      recent.audiences.every((audience, index) => audience === audiences[index])
    return isSame && this.#isCurrent(recent) ? recent : undefined
  }

  #find(key: string): CachedToken<Value> | undefined {
    const cached = this.#young.get(key) ?? this.#old.get(key)
    if (!cached) return undefined
    if (this.#isCurrent(cached)) {
      if (!this.#young.has(key)) this.#add(key, cached)
      return cached
    }
    this.#young.delete(key)
    this.#old.delete(key)
    return undefined
  }

  /** A clock that is set back must not extend an entry. */
  #isCurrent({ since, until }: CachedToken<Value>): boolean {
    const now = this.#clock.now()
    return since <= now && now < until
  }

  #verifyOnce(
    key: string,
    subject: Pick<RecentToken<Value>, 'token' | 'audiences'>,
    verify: () => Promise<Verified<Value>>,
  ): Promise<Value> {
    const running = this.#verifying.get(key)
    if (running) return running
    // False after `clear`: the result is returned, but not cached, since the old rules verified it.
    const finish = (): boolean => this.#verifying.get(key) === run && this.#verifying.delete(key)
    const run: Promise<Value> = verify().then(
      ({ value, until }) => {
        if (!finish()) return value
        const since = this.#clock.now()
        const cached = { value, since, until: Math.min(until, since + this.#maxAgeMs) }
        this.#add(key, cached)
        this.#addRecent({ ...cached, ...subject })
        return value
      },
      (error: unknown) => {
        finish()
        throw error
      },
    )
    this.#verifying.set(key, run)
    return run
  }

  #add(key: string, cached: CachedToken<Value>): void {
    if (this.#young.size >= this.#maxPerGeneration) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, cached)
  }

  #addRecent(cached: RecentToken<Value>): void {
    if (this.#recentMs === 0) return
    if (this.#recent.size >= maxRecentTokens) this.#recent.clear()
    const since = this.#clock.now()
    const until = Math.min(cached.until, since + this.#recentMs)
    this.#recent.set(cached.token.slice(-recentKeyLength), { ...cached, since, until })
  }

  /** A keyed hash: collisions cannot be computed, and the token itself is not in memory. */
  #keyOf(token: string, audiences: readonly string[]): string {
    let text = ''
    for (const part of [token, ...audiences]) text += `${part.length}:${part}`
    return createHmac('sha256', this.#hashKey).update(text).digest('base64')
  }
}
