import { type Clock, type Logger, pause } from '../../core/index.ts'
import type { KeySet } from '../../jose/index.ts'
import { type AgeBounds, cacheAgeMs } from './cache-age.ts'
import { IssuerUnavailable } from './errors.ts'
import type { FetchedDocument } from './fetch-document.ts'

/** How long keys are believed. */
interface KeyCacheRules extends AgeBounds {
  /** How long a document may take, whoever fetches it. */
  readonly patienceMs: number
  /** Least time between two fetches because of a key id that nobody knows. */
  readonly cooldownMs: number
  /** Least time between two fetches after one has failed. */
  readonly retryMs: number
  /** How long the last good set serves on when no new one can be had. */
  readonly staleMs: number
}

/** What keys of an issuer are made of. */
export interface RemoteKeysParts {
  readonly issuer: string
  /** The address of the keys, if it is not to be discovered. */
  readonly jwksUri?: string | undefined
  readonly discoveryUrl: string
  readonly readJwksUri: (body: Uint8Array) => string
  readonly readKeySet: (body: Uint8Array) => KeySet
  readonly fetch: (url: URL) => Promise<FetchedDocument>
  readonly rules: KeyCacheRules
  readonly clock: Clock
  readonly log: Logger
}

interface Kept<Value> {
  readonly value: Value
  readonly since: number
  readonly until: number
}

/** The published keys of one issuer, fetched when needed, by one request for all who wait. */
export class RemoteKeys {
  readonly #parts: RemoteKeysParts
  #address: Kept<string> | undefined
  #keys: Kept<KeySet> | undefined
  #underWay: Promise<void> | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  /** Of the last try, if it failed. */
  #failure: IssuerUnavailable | undefined

  constructor(parts: RemoteKeysParts) {
    this.#parts = parts
  }

  /** The keys to verify a token with that names this key; throws IssuerUnavailable when there are none. */
  async forToken(kid: string | undefined): Promise<KeySet> {
    const { rules } = this.#parts
    const kept = this.#usable()
    if (!kept) await this.#refresh(rules.retryMs)
    else if (!this.#isBefore(kept, kept.until)) await this.#refresh(rules.cooldownMs)
    else if (kid !== undefined && !kept.value.has(kid)) await this.#refresh(rules.cooldownMs)
    else if (this.#isLate(kept)) this.#refresh(rules.cooldownMs).catch(() => {})
    const keys = this.#usable()
    if (!keys) throw this.#failure ?? noKeys()
    // Whether there is such a key cannot be told as long as nobody answers.
    if (this.#failure && kid !== undefined && !keys.value.has(kid)) throw this.#failure
    return keys.value
  }

  /** The last good set, as long as it may serve. */
  #usable(): Kept<KeySet> | undefined {
    const kept = this.#keys
    return kept && this.#isBefore(kept, kept.until + this.#parts.rules.staleMs) ? kept : undefined
  }

  /** One fetch for all who ask, and none if the last one was a moment ago. Failures are kept, not thrown. */
  async #refresh(leastMs: number): Promise<void> {
    const sinceTried = this.#parts.clock.now() - this.#triedAt
    if (!this.#underWay && sinceTried >= 0 && sinceTried < leastMs) return
    this.#underWay ??= this.#load().finally(() => {
      this.#underWay = undefined
    })
    await this.#underWay
  }

  async #load(): Promise<void> {
    const { clock, log, issuer } = this.#parts
    this.#triedAt = clock.now()
    try {
      const fetched = await this.#fetch(await this.#jwksUri())
      const value = this.#parts.readKeySet(fetched.body)
      if (this.#keys && !sameKeys(this.#keys.value, value))
        log.info({ issuer, keys: value.keys.length }, 'the keys of the issuer have changed')
      this.#keys = this.#kept(value, fetched)
      this.#failure = undefined
    } catch (err) {
      // The keys may have moved: ask where they are before the next try.
      this.#address = undefined
      this.#failure = asUnavailable(err)
      log.warn({ issuer, err }, 'cannot fetch the keys of the issuer')
    }
  }

  async #jwksUri(): Promise<string> {
    const { jwksUri, discoveryUrl } = this.#parts
    if (jwksUri !== undefined) return jwksUri
    const known = this.#address
    if (known && this.#isBefore(known, known.until)) return known.value
    const fetched = await this.#fetch(discoveryUrl)
    this.#address = this.#kept(this.#parts.readJwksUri(fetched.body), fetched)
    return this.#address.value
  }

  /** One that never ends would hold up all who wait, now and later. */
  async #fetch(url: string): Promise<FetchedDocument> {
    const { fetch, rules } = this.#parts
    const ended = new AbortController()
    const tooLate = pause(rules.patienceMs, ended.signal).then(() => {
      throw new IssuerUnavailable('too-slow', 'the documents of the issuer did not come in time')
    })
    try {
      return await Promise.race([fetch(new URL(url)), tooLate])
    } finally {
      tooLate.catch(() => {})
      ended.abort()
    }
  }

  #kept<Value>(value: Value, fetched: FetchedDocument): Kept<Value> {
    const since = this.#parts.clock.now()
    return { value, since, until: since + cacheAgeMs(fetched, this.#parts.rules) }
  }

  /** A clock that was put back must not make anything last. */
  #isBefore({ since }: Kept<unknown>, end: number): boolean {
    const now = this.#parts.clock.now()
    return since <= now && now < end
  }

  /** In the last fifth of their time keys are fetched anew while the old ones serve on. */
  #isLate({ since, until }: Kept<unknown>): boolean {
    return this.#parts.clock.now() > until - (until - since) / 5
  }
}

/** Whatever fails on the way to the keys, it is not the fault of a token. */
const asUnavailable = (cause: unknown): IssuerUnavailable =>
  cause instanceof IssuerUnavailable
    ? cause
    : new IssuerUnavailable('unreachable', 'the documents of the issuer cannot be had', { cause })

const noKeys = (): IssuerUnavailable =>
  new IssuerUnavailable('unreachable', 'the keys of the issuer are not there')

const sameKeys = (one: KeySet, other: KeySet): boolean =>
  one.keys.length === other.keys.length && one.keys.every(({ kid }) => other.has(kid))
