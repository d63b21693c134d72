import type { KeyObject } from 'node:crypto'
import {
  ApiError,
  type Clock,
  type Logger,
  longestTimerMs,
  type SealedValue,
  type SealedValues,
} from '../../core/index.ts'
import { type KeySet, type SigningKey, signingKey } from '../../jose/index.ts'
import { generateRsaKey } from '../../pki/index.ts'
import { documentMaxAgeSeconds as maxAgeSeconds } from '../limits.ts'
import {
  advanced,
  defaultRotationTimes,
  type IssuerKeys,
  isFull,
  type KeyState,
  lastPublishedAt,
  nextChangeAt,
  type RotationTimes,
  signingKeyOf,
  withNextKey,
  withTokenUntil,
} from './key-ring.ts'
import {
  decodeRing,
  encodeRing,
  publishedKeys,
  type StoredRing,
  signingKeysName,
  withNewKey,
} from './stored-ring.ts'

const retryMs = 10_000

/** What stored keys depend on. */
export interface StoredKeysDeps {
  readonly values: SealedValues
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Creates the first key of a new cluster. */
  readonly firstKey: () => Promise<KeyObject>
  /** Time between two rotations; 0 or absent for none. */
  readonly rotationPeriodMs?: number
  readonly times?: RotationTimes
}

/** Keys that are stored in the cluster, shared by all servers, and rotated. */
export class StoredKeys implements IssuerKeys {
  readonly #deps: StoredKeysDeps
  readonly #times: RotationTimes
  readonly #listeners = new Set<() => void>()
  #stored: StoredRing
  #published: KeySet
  #timer: NodeJS.Timeout | undefined
  #confirmedAt: number
  /** Of the latest value. */
  #version = 0
  /** Number of values received. */
  #updates = 0

  private constructor(deps: StoredKeysDeps, stored: StoredRing) {
    this.#deps = deps
    this.#times = deps.times ?? defaultRotationTimes
    this.#stored = stored
    this.#published = publishedKeys(stored)
    this.#confirmedAt = deps.clock.monotonic()
  }

  /** Loads the keys of the cluster, or creates the first one, and watches them until the signal aborts. */
  static async open(deps: StoredKeysDeps): Promise<StoredKeys> {
    const keys = new StoredKeys(deps, await ensureRing(deps))
    deps.values.watch(signingKeysName, (changed) => keys.#update(changed), deps.signal)
    await keys.#refresh()
    await keys.#advance()
    keys.#refreshPeriodically()
    return keys
  }

  get current(): KeyState {
    const published = this.#published
    return { signer: this.#signer(), published, accepted: published, maxAgeSeconds }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  requireFresh(): void {
    const staleMs = this.#deps.clock.monotonic() - this.#confirmedAt
    if (staleMs > this.#times.maxStaleMs)
      throw new ApiError(
        'ServiceUnavailable',
        `the signing keys of the cluster could not be read for ${Math.round(staleMs / 60_000)} minutes and may have changed`,
      )
  }

  /** Stores that the key must be kept until a token expires, before the token is signed. */
  async noteToken(kid: string, until: number): Promise<void> {
    const now = this.#deps.clock.now()
    if (withTokenUntil(this.#stored.ring, kid, until, now) === this.#stored.ring) return
    await this.#change((stored) => {
      const ring = withTokenUntil(stored.ring, kid, until, now)
      return ring === stored.ring ? undefined : { ...stored, ring }
    })
  }

  #signer(): SigningKey {
    const { ring, keys } = this.#stored
    const key = keys.get(signingKeyOf(ring, this.#deps.clock.now())?.kid ?? '')
    if (!key) throw new Error('no key of the ring is signing')
    return key
  }

  #update({ value, version }: SealedValue): void {
    this.#confirmedAt = this.#deps.clock.monotonic()
    if (version <= this.#version) return
    try {
      this.#replace(decodeRing(value))
    } catch (err) {
      this.#deps.log.error({ err }, 'signing keys are invalid, keeping the previous ones')
      return
    }
    this.#version = version
    this.#updates += 1
    this.#notify()
  }

  #replace(stored: StoredRing): void {
    this.#stored = stored
    this.#published = publishedKeys(stored)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
    this.#wait()
  }

  /** Reads the current keys; while that fails they may be stale. */
  async #refresh(): Promise<void> {
    const { values, clock, signal } = this.#deps
    const startedAt = clock.monotonic()
    const found = await values.get(signingKeysName, signal)
    if (!found) return
    this.#update(found)
    this.#confirmedAt = startedAt
  }

  /** Reads the keys periodically: a watch does not report that its network is down. */
  #refreshPeriodically(): void {
    const { log, signal } = this.#deps
    const timer = setInterval(() => {
      this.#refresh().catch((err: unknown) => log.warn({ err }, 'cannot read the signing keys'))
    }, this.#times.maxStaleMs / 5)
    timer.unref()
    const stop = (): void => {
      clearInterval(timer)
      clearTimeout(this.#timer)
    }
    signal.addEventListener('abort', stop, { once: true })
  }

  /** Waits until the ring is due to change. */
  #wait(): void {
    clearTimeout(this.#timer)
    if (this.#deps.signal.aborted) return
    const now = this.#deps.clock.now()
    const next = Math.min(
      nextChangeAt(this.#stored.ring, now, this.#times) ?? Number.POSITIVE_INFINITY,
      this.#successorDueAt(),
    )
    if (next === Number.POSITIVE_INFINITY) return
    this.#waitFor(Math.min(Math.max(next - now, 0), longestTimerMs))
  }

  #waitFor(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#advance(), ms)
    this.#timer.unref()
  }

  #successorDueAt(stored: StoredRing = this.#stored): number {
    const { rotationPeriodMs = 0 } = this.#deps
    if (rotationPeriodMs === 0 || isFull(stored.ring)) return Number.POSITIVE_INFINITY
    return lastPublishedAt(stored.ring) + rotationPeriodMs
  }

  async #advance(): Promise<void> {
    const { clock, log } = this.#deps
    try {
      const isDue = this.#successorDueAt() <= clock.now()
      const successor = isDue ? signingKey(await generateRsaKey()) : undefined
      await this.#change((stored) => {
        const now = clock.now()
        // Another server may have been faster: the stored keys decide.
        const withSuccessor =
          successor && this.#successorDueAt(stored) <= now
            ? withNewKey(stored, successor, now, this.#times)
            : stored
        const ring = advanced(withSuccessor.ring, now, this.#times)
        return JSON.stringify(ring) === JSON.stringify(stored.ring)
          ? undefined
          : { ...withSuccessor, ring }
      })
    } catch (err) {
      if (this.#deps.signal.aborted) return
      log.error({ err }, 'cannot update the signing keys, retrying')
      this.#waitFor(retryMs)
      return
    }
    this.#warnIfFull()
    this.#notify()
  }

  #warnIfFull(): void {
    const { rotationPeriodMs = 0, log } = this.#deps
    const { ring } = this.#stored
    if (rotationPeriodMs > 0 && isFull(ring))
      log.warn(
        { keys: ring.length },
        'maximum number of signing keys reached, rotation is suspended until the last token of one has expired; shorter token lifetimes keep fewer keys',
      )
  }

  async #change(change: (stored: StoredRing) => StoredRing | undefined): Promise<void> {
    const { values, signal } = this.#deps
    let changed: StoredRing | undefined
    let updates = 0
    await values.change(
      signingKeysName,
      (present) => {
        if (!present) return undefined
        updates = this.#updates
        changed = change(decodeRing(present))
        return changed && encodeRing(changed)
      },
      signal,
    )
    // An update that arrived meanwhile has this change or a later one.
    if (changed && updates === this.#updates) this.#replace(changed)
  }
}

async function ensureRing(deps: StoredKeysDeps): Promise<StoredRing> {
  const { values, clock, signal, firstKey } = deps
  const first = (await values.get(signingKeysName, signal)) ? undefined : await firstKey()
  await values.change(
    signingKeysName,
    (present) => (present || !first ? undefined : encodeRing(newRing(first, clock))),
    signal,
  )
  const found = await values.get(signingKeysName, signal)
  if (!found) throw new Error('the signing keys were deleted while they were read')
  return decodeRing(found.value)
}

function newRing(privateKey: KeyObject, clock: Clock): StoredRing {
  const key = signingKey(privateKey)
  const ring = withNextKey([], key.kid, clock.now(), defaultRotationTimes)
  return { ring, keys: new Map([[key.kid, key]]) }
}
