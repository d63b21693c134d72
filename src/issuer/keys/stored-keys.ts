import type { KeyObject } from 'node:crypto'
import { changeObject, follow } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  type KubeObject,
  type Logger,
  longestTimerMs,
  wellKnownKinds,
} from '../../core/index.ts'
import { type SigningKey, signingKey } from '../../jose/index.ts'
import type { IssuerKeys, KeyState } from './issuer-keys.ts'
import {
  advanced,
  defaultRotationTimes,
  nextChangeAt,
  type RotationTimes,
  signingKeyOf,
  withNextKey,
  withTokenUntil,
} from './key-ring.ts'
import {
  parseRing,
  publishedKeys,
  renderRing,
  type StoredRing,
  signingKeysKey,
} from './stored-ring.ts'

const maxAgeSeconds = 3_600
const retryMs = 10_000

/** What keys in the cluster are kept with. */
export interface StoredKeysParts {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Makes the first key of a new cluster. */
  readonly firstKey: () => Promise<KeyObject>
  readonly times?: RotationTimes
}

/** Keys that live in the cluster, are the same for every server, and change their stages as time passes. */
export class StoredKeys implements IssuerKeys {
  readonly #parts: StoredKeysParts
  readonly #times: RotationTimes
  readonly #listeners = new Set<() => void>()
  #stored: StoredRing
  #timer: NodeJS.Timeout | undefined

  private constructor(parts: StoredKeysParts, stored: StoredRing) {
    this.#parts = parts
    this.#times = parts.times ?? defaultRotationTimes
    this.#stored = stored
  }

  /** Finds the keys of the cluster, or makes the first one, and follows them from then on. */
  static async open(parts: StoredKeysParts): Promise<StoredKeys> {
    const { view, signal, log, clock } = parts
    const keys = new StoredKeys(parts, await ensureRing(parts))
    const query = {
      namespace: signingKeysKey.namespace,
      fieldSelector: `metadata.name=${signingKeysKey.name}`,
    }
    const following = follow(
      { view, kind: wellKnownKinds.secret, query, log, clock },
      {
        put: (object) => keys.#take(object),
        remove: () =>
          log.warn(
            {},
            'the Secret with the signing keys is gone; the keys stay in use until a restart',
          ),
      },
      signal,
    )
    await following.synced
    await keys.#advance()
    signal.addEventListener('abort', () => clearTimeout(keys.#timer), { once: true })
    return keys
  }

  get current(): KeyState {
    const signer = this.#signer()
    const published = publishedKeys(this.#stored)
    return { signer, published, accepted: published, maxAgeSeconds }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
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

  #take(secret: KubeObject): void {
    try {
      this.#stored = parseRing(secret)
    } catch (err) {
      this.#parts.log.error(
        { err },
        'the signing keys as they are now cannot be used; those from before stay in use',
      )
      return
    }
    this.#tell()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
    this.#wait()
  }

  /** Waits for the next moment at which time alone changes something. */
  #wait(): void {
    clearTimeout(this.#timer)
    if (this.#parts.signal.aborted) return
    const now = this.#parts.clock.now()
    const next = nextChangeAt(this.#stored.ring, now, this.#times)
    if (next === undefined) return
    this.#waitFor(Math.min(next - now, longestTimerMs))
  }

  #waitFor(ms: number): void {
    this.#timer = setTimeout(() => void this.#advance(), ms)
    this.#timer.unref()
  }

  async #advance(): Promise<void> {
    const { clock, log } = this.#parts
    try {
      await this.#change((stored) => {
        const ring = advanced(stored.ring, clock.now(), this.#times)
        return JSON.stringify(ring) === JSON.stringify(stored.ring)
          ? undefined
          : { ...stored, ring }
      })
    } catch (err) {
      if (this.#parts.signal.aborted) return
      log.error({ err }, 'cannot move the signing keys on; trying again')
      this.#waitFor(retryMs)
      return
    }
    this.#tell()
  }

  async #change(change: (stored: StoredRing) => StoredRing | undefined): Promise<void> {
    const { view, signal } = this.#parts
    let changed: StoredRing | undefined
    await changeObject(
      { view, kind: wellKnownKinds.secret, key: signingKeysKey },
      (present) => {
        if (!present) return undefined
        changed = change(parseRing(present))
        return changed && renderRing(changed, present)
      },
      signal,
    )
    if (changed) this.#stored = changed
  }
}

async function ensureRing(parts: StoredKeysParts): Promise<StoredRing> {
  const { view, clock, signal, firstKey } = parts
  const key = { view, kind: wellKnownKinds.secret, key: signingKeysKey }
  const first = (await view.get(key.kind, key.key, signal)) ? undefined : await firstKey()
  await changeObject(
    key,
    (present) => (present || !first ? undefined : renderRing(newRing(first, clock))),
    signal,
  )
  const secret = await view.get(key.kind, key.key, signal)
  if (!secret) throw new Error('the Secret with the signing keys vanished while it was read')
  return parseRing(secret)
}

function newRing(privateKey: KeyObject, clock: Clock): StoredRing {
  const key = signingKey(privateKey)
  const ring = withNextKey([], key.kid, clock.now(), defaultRotationTimes)
  return { ring, keys: new Map([[key.kid, key]]) }
}
