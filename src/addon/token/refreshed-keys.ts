import { type Clock, type Logger, withinTime } from '../../core/index.ts'
import type { CompactJws } from '../../jose/index.ts'
import { AddonTokenRefused } from './claims.ts'
import type { AddonKeySource, AddonVerificationKey } from './verification-keys.ts'

/** How keys from elsewhere are kept fresh. */
export interface RefreshedKeysOptions {
  readonly name: string
  /** Asks for the keys of now; fails rather than returning none. */
  readonly load: (signal: AbortSignal) => Promise<readonly AddonVerificationKey[]>
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly everyMs?: number
  /** How long a key is believed after it was last shown: tokens live on, and one address may hide several servers. */
  readonly graceMs?: number
  /** How long all keys are believed while nothing can be asked. */
  readonly staleMs?: number
  /** How often strangers' tokens can make us ask. */
  readonly pauseMs?: number
}

const answerMs = 5_000

const defaults = { everyMs: 60_000, graceMs: 300_000, staleMs: 3_600_000, pauseMs: 5_000 }

/** Keys that are asked for now and then, and at once when a token names one that is not known yet. */
export class RefreshedKeys implements AddonKeySource {
  readonly name: string
  readonly #options: RefreshedKeysOptions & typeof defaults
  readonly #lastShown = new Map<string, { readonly key: AddonVerificationKey; at: number }>()
  readonly #listeners: (() => void)[] = []
  #asked = Number.NEGATIVE_INFINITY
  #answered = Number.NEGATIVE_INFINITY
  #underWay: Promise<void> | undefined

  constructor(options: RefreshedKeysOptions) {
    this.name = options.name
    this.#options = { ...defaults, ...options }
  }

  /** Asks for the first time and then periodically; a first failure is logged, and tokens are refused meanwhile. */
  async start(): Promise<void> {
    const { everyMs, pauseMs, signal } = this.#options
    await this.#refresh()
    if (signal.aborted) return
    const timer = setInterval(() => void this.#refresh(), everyMs).unref()
    // Nobody's token makes us ask while nobody is sent here.
    const early = setInterval(() => {
      if (this.#isStale()) void this.#refresh()
    }, pauseMs).unref()
    const stop = (): void => {
      for (const each of [timer, early]) clearInterval(each)
    }
    signal.addEventListener('abort', stop, { once: true })
  }

  get problem(): AddonKeySource['problem'] {
    return this.#isStale() ? 'keys-unavailable' : undefined
  }

  async find({ header: { kid } }: CompactJws): Promise<AddonVerificationKey | undefined> {
    if (kid === undefined) return undefined
    const known = this.#believed(kid)
    if (known) return known
    const { clock, pauseMs } = this.#options
    // One question for all who wait, and then none for a while, whatever kids are sent.
    if (this.#underWay || clock.monotonic() - this.#asked >= pauseMs) await this.#refresh()
    const found = this.#believed(kid)
    if (!found && this.#isStale())
      throw new AddonTokenRefused('keys-unavailable', `no current keys are known by ${this.name}`)
    return found
  }

  onLess(listener: () => void): void {
    this.#listeners.push(listener)
  }

  #believed(kid: string): AddonVerificationKey | undefined {
    const shown = this.#lastShown.get(kid)
    return shown && !this.#isStale() ? shown.key : undefined
  }

  #isStale(): boolean {
    return this.#options.clock.monotonic() - this.#answered > this.#options.staleMs
  }

  #refresh(): Promise<void> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = undefined
    })
    return this.#underWay
  }

  async #ask(): Promise<void> {
    const { load, clock, log, signal } = this.#options
    this.#asked = clock.monotonic()
    try {
      this.#take(await withinTime(answerMs, signal, load))
    } catch (err) {
      if (!signal.aborted) log.warn({ err, keys: this.name }, 'the keys cannot be asked for')
    }
  }

  #take(keys: readonly AddonVerificationKey[]): void {
    const { clock, graceMs, log } = this.#options
    const now = clock.monotonic()
    this.#answered = now
    for (const key of keys) {
      if (!this.#lastShown.has(key.kid)) log.info({ kid: key.kid, keys: this.name }, 'new key')
      this.#lastShown.set(key.kid, { key, at: now })
    }
    for (const [kid, { at }] of this.#lastShown) {
      if (now - at <= graceMs) continue
      this.#lastShown.delete(kid)
      log.info({ kid, keys: this.name }, 'key is no longer believed')
      for (const listener of this.#listeners) listener()
    }
  }
}
