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

const maxAgeSeconds = 3_600
const retryMs = 10_000

/** What keys in the cluster are kept with. */
export interface StoredKeysParts {
  readonly values: SealedValues
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Makes the first key of a new cluster. */
  readonly firstKey: () => Promise<KeyObject>
  /** After which time a key gets a successor; 0 or absent for never. */
  readonly rotationPeriodMs?: number
  readonly times?: RotationTimes
}

/** Keys that live in the cluster, are the same for every server, and change their stages as time passes. */
export class StoredKeys implements IssuerKeys {
  readonly #parts: StoredKeysParts
  readonly #times: RotationTimes
  readonly #listeners = new Set<() => void>()
  #stored: StoredRing
  #published: KeySet
  #timer: NodeJS.Timeout | undefined
  #confirmedAt: number
  /** Of the value that was taken in last. */
  #version = 0
  /** How often one was. */
  #taken = 0

  private constructor(parts: StoredKeysParts, stored: StoredRing) {
    this.#parts = parts
    this.#times = parts.times ?? defaultRotationTimes
    this.#stored = stored
    this.#published = publishedKeys(stored)
    this.#confirmedAt = parts.clock.monotonic()
  }

  /** Reads the keys of the cluster, or creates the first one, and keeps them up to date until the signal aborts. */
  static async open(parts: StoredKeysParts): Promise<StoredKeys> {
    const keys = new StoredKeys(parts, await ensureRing(parts))
    parts.values.watch(signingKeysName, (changed) => keys.#take(changed), parts.signal)
    await keys.#confirm()
    await keys.#advance()
    keys.#keepFresh()
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
    const staleMs = this.#parts.clock.monotonic() - this.#confirmedAt
    if (staleMs > this.#times.maxStaleMs)
      throw new ApiError(
        'ServiceUnavailable',
        `the signing keys of the cluster could not be read for ${Math.round(staleMs / 60_000)} minutes and may have changed`,
      )
  }

  /** Makes sure that the signing key is kept as long as a token that it is about to sign. */
  async noteToken(kid: string, until: number): Promise<void> {
    const now = this.#parts.clock.now()
    if (withTokenUntil(this.#stored.ring, kid, until, now) === this.#stored.ring) return
    await this.#change((stored) => {
      const ring = withTokenUntil(stored.ring, kid, until, now)
      return ring === stored.ring ? undefined : { ...stored, ring }
    })
  }

  #signer(): SigningKey {
    const { ring, keys } = this.#stored
    const key = keys.get(signingKeyOf(ring, this.#parts.clock.now())?.kid ?? '')
    if (!key) throw new Error('no key of the ring signs now')
    return key
  }

  #take({ value, version }: SealedValue): void {
    this.#confirmedAt = this.#parts.clock.monotonic()
    if (version <= this.#version) return
    try {
      this.#know(decodeRing(value))
    } catch (err) {
      this.#parts.log.error({ err }, 'signing keys are invalid, keeping the previous ones')
      return
    }
    this.#version = version
    this.#taken += 1
    this.#tell()
  }

  #know(stored: StoredRing): void {
    this.#stored = stored
    this.#published = publishedKeys(stored)
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
    this.#wait()
  }

  /** Reads the keys as they are now; while that fails they are stale. */
  async #confirm(): Promise<void> {
    const { values, clock, signal } = this.#parts
    const requestedAt = clock.monotonic()
    const found = await values.get(signingKeysName, signal)
    if (!found) return
    this.#take(found)
    this.#confirmedAt = requestedAt
  }

  /** Reads the keys again and again: a watch without a network is as silent as one without changes. */
  #keepFresh(): void {
    const { log, signal } = this.#parts
    const timer = setInterval(() => {
      this.#confirm().catch((err: unknown) => log.warn({ err }, 'cannot read the signing keys'))
    }, this.#times.maxStaleMs / 5)
    timer.unref()
    const stop = (): void => {
      clearInterval(timer)
      clearTimeout(this.#timer)
    }
    signal.addEventListener('abort', stop, { once: true })
  }

  /** Waits for the next moment at which time alone changes something. */
  #wait(): void {
    clearTimeout(this.#timer)
    if (this.#parts.signal.aborted) return
    const now = this.#parts.clock.now()
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
    const { rotationPeriodMs = 0 } = this.#parts
    if (rotationPeriodMs === 0 || isFull(stored.ring)) return Number.POSITIVE_INFINITY
    return lastPublishedAt(stored.ring) + rotationPeriodMs
  }

  async #advance(): Promise<void> {
    const { clock, log } = this.#parts
    try {
      const isDue = this.#successorDueAt() <= clock.now()
      const successor = isDue ? signingKey(await generateRsaKey()) : undefined
      await this.#change((stored) => {
        const now = clock.now()
        // Another server may have been faster, so it is decided by what is stored now.
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
      if (this.#parts.signal.aborted) return
      log.error({ err }, 'cannot move the signing keys on; trying again')
      this.#waitFor(retryMs)
      return
    }
    this.#warnIfFull()
    this.#tell()
  }

  #warnIfFull(): void {
    const { rotationPeriodMs = 0, log } = this.#parts
    const { ring } = this.#stored
    if (rotationPeriodMs > 0 && isFull(ring))
      log.warn(
        { keys: ring.length },
        'no further key is made until the last token of one has died: relying parties read no more of them; shorter lives of tokens keep fewer',
      )
  }

  async #change(change: (stored: StoredRing) => StoredRing | undefined): Promise<void> {
    const { values, signal } = this.#parts
    let changed: StoredRing | undefined
    let taken = 0
    await values.change(
      signingKeysName,
      (present) => {
        if (!present) return undefined
        taken = this.#taken
        changed = change(decodeRing(present))
        return changed && encodeRing(changed)
      },
      signal,
    )
    // What was taken in meanwhile is this very change or a later one, which it must not undo.
    if (changed && taken === this.#taken) this.#know(changed)
  }
}

async function ensureRing(parts: StoredKeysParts): Promise<StoredRing> {
  const { values, clock, signal, firstKey } = parts
  const first = (await values.get(signingKeysName, signal)) ? undefined : await firstKey()
  await values.change(
    signingKeysName,
    (present) => (present || !first ? undefined : encodeRing(newRing(first, clock))),
    signal,
  )
  const found = await values.get(signingKeysName, signal)
  if (!found) throw new Error('the signing keys vanished while they were read')
  return decodeRing(found.value)
}

function newRing(privateKey: KeyObject, clock: Clock): StoredRing {
  const key = signingKey(privateKey)
  const ring = withNextKey([], key.kid, clock.now(), defaultRotationTimes)
  return { ring, keys: new Map([[key.kid, key]]) }
}
