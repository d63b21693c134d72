import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../core/index.ts'

/** What the verification of a token came to. */
export interface Verdict<Value> {
  readonly value: Value
  /** Milliseconds since 1970 after which it must not be believed any more. */
  readonly until: number
}

interface Kept<Value> extends Verdict<Value> {
  readonly since: number
}

/** How much is kept. */
export interface TokenCacheOptions {
  readonly clock: Clock
  /** Tokens that were found good. */
  readonly capacity?: number
  /** No verdict is kept longer, whatever the token says. */
  readonly longestMs?: number
}

/**
 * Remembers tokens that were verified, so that a token used again costs one hash.
 * Only good tokens are kept: a flood of bad ones can push out none of them.
 */
export class VerifiedTokenCache<Value> {
  readonly #hashKey = randomBytes(32)
  readonly #clock: Clock
  readonly #capacity: number
  readonly #longestMs: number
  readonly #underWay = new Map<string, Promise<Verdict<Value>>>()
  // Two generations: when the young one is full it becomes the old one, and the old one is dropped.
  #young = new Map<string, Kept<Value>>()
  #old = new Map<string, Kept<Value>>()

  constructor({ clock, capacity = 32_768, longestMs = 10_000 }: TokenCacheOptions) {
    this.#clock = clock
    this.#capacity = Math.max(1, Math.ceil(capacity / 2))
    this.#longestMs = longestMs
  }

  /** The verdict on a token for an audience; `verify` runs once however many ask at the same time, and throws for a bad token. */
  async get(
    token: string,
    audiences: readonly string[],
    verify: () => Promise<Verdict<Value>>,
  ): Promise<Value> {
    const key = this.#keyOf(token, audiences)
    const known = this.#find(key)
    if (known) return known.value
    return (await this.#once(key, verify)).value
  }

  /** Forgets everything, for example because the keys have changed. */
  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#underWay.clear()
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  #find(key: string): Kept<Value> | undefined {
    const verdict = this.#young.get(key) ?? this.#old.get(key)
    if (!verdict) return undefined
    const now = this.#clock.now()
    // A clock that was put back would make a verdict last, and a token from the future good.
    if (verdict.since <= now && now < verdict.until) {
      if (!this.#young.has(key)) this.#keep(key, verdict)
      return verdict
    }
    this.#young.delete(key)
    this.#old.delete(key)
    return undefined
  }

  #once(key: string, verify: () => Promise<Verdict<Value>>): Promise<Verdict<Value>> {
    const running = this.#underWay.get(key)
    if (running) return running
    const run = verify().then(({ value, until }) => {
      const since = this.#clock.now()
      const verdict = { value, since, until: Math.min(until, since + this.#longestMs) }
      // Not after `clear`: what was verified by the old rules is handed out, but not kept.
      if (this.#underWay.get(key) === run) this.#keep(key, verdict)
      return verdict
    })
    this.#underWay.set(key, run)
    const done = (): void => {
      if (this.#underWay.get(key) === run) this.#underWay.delete(key)
    }
    run.catch(() => {}).finally(done)
    return run
  }

  #keep(key: string, verdict: Kept<Value>): void {
    if (this.#young.size >= this.#capacity) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, verdict)
  }

  /** A keyed hash, so that nobody can aim for a collision and no token lies about in memory. */
  #keyOf(token: string, audiences: readonly string[]): string {
    let text = ''
    for (const part of [token, ...audiences]) text += `${part.length}:${part}`
    return createHmac('sha256', this.#hashKey).update(text).digest('base64')
  }
}
