import type { KeySet, SigningKey } from '../../jose/index.ts'
import { maxKeys } from '../limits.ts'

/** A signing key and the times of its stages, in milliseconds since 1970. */
export interface RingKey {
  readonly kid: string
  /** When it was published. */
  readonly publishedAt: number
  /** When it begins to sign; caches of the key set have it by then. */
  readonly signsFrom: number
  /** When the next key began to sign. */
  readonly retiredAt?: number
  /** All tokens that it has signed expire before this. */
  readonly tokensUntil: number
}

/** The published keys, in the order in which they sign. */
export type KeyRing = readonly RingKey[]

/** The stage of a key: published but not used, signing, or only kept for the tokens that it has signed. */
export type KeyStage = 'next' | 'signing' | 'retired'

/** The durations of the stages. */
export interface RotationTimes {
  /** How long a key is published before it signs: the cache lifetime of relying parties, and a margin. */
  readonly publishMs: number
  /** For how long a server may sign without confirming the stored keys; part of the margin. */
  readonly maxStaleMs: number
  /** How much longer than its last token a key is kept, because of clock skew. */
  readonly marginMs: number
}

/** `publishMs`: max-age of the documents (1 h), the slowest known relying parties (20 min), and `maxStaleMs`. */
export const defaultRotationTimes: RotationTimes = {
  publishMs: 90 * 60_000,
  maxStaleMs: 10 * 60_000,
  marginMs: 10 * 60_000,
}

/** Whether no further key may be published. */
export const isFull = (ring: KeyRing): boolean => ring.length >= maxKeys

/** The key that signs: the latest whose `signsFrom` has passed. */
export function signingKeyOf(ring: KeyRing, now: number): RingKey | undefined {
  return ring.findLast(({ signsFrom }) => signsFrom <= now)
}

/** The stage of a key of the ring. */
export function stageOf(ring: KeyRing, key: RingKey, now: number): KeyStage {
  const signing = signingKeyOf(ring, now)
  if (signing?.kid === key.kid) return 'signing'
  return key.signsFrom > now ? 'next' : 'retired'
}

/** Publishes a new key, which signs after `publishMs`; the first key of a ring signs at once. */
export function withNextKey(
  ring: KeyRing,
  kid: string,
  now: number,
  times: RotationTimes,
): KeyRing {
  const signsFrom = ring.length === 0 ? now : now + times.publishMs
  const next = { kid, publishedAt: now, signsFrom, tokensUntil: now }
  return [...ring, next].toSorted((a, b) => a.signsFrom - b.signsFrom)
}

/** For compromised keys: only the new key is valid, at once. All existing tokens become invalid. */
export const withOnlyKey = (kid: string, now: number): KeyRing => [
  { kid, publishedAt: now, signsFrom: now, tokensUntil: now },
]

/** The ring at this time: keys with a successor are retired, those whose last token has expired are removed. */
export function advanced(ring: KeyRing, now: number, times: RotationTimes): KeyRing {
  const signing = signingKeyOf(ring, now)
  return ring
    .map((key) => {
      const hasSuccessor =
        key.retiredAt === undefined && signing !== undefined && key.signsFrom < signing.signsFrom
      return hasSuccessor ? { ...key, retiredAt: signing.signsFrom } : key
    })
    .filter((key) => now < (droppedAt(key, times) ?? Number.POSITIVE_INFINITY))
}

/** When the latest key was published; the next one is due a rotation period later. */
export const lastPublishedAt = (ring: KeyRing): number =>
  Math.max(...ring.map(({ publishedAt }) => publishedAt))

/** When a retired key is removed; undefined for other keys. */
export const droppedAt = (
  { retiredAt, tokensUntil }: RingKey,
  times: RotationTimes,
): number | undefined =>
  retiredAt === undefined ? undefined : Math.max(retiredAt, tokensUntil) + times.marginMs

/** When `advanced` changes the ring next; undefined if never. */
export function nextChangeAt(ring: KeyRing, now: number, times: RotationTimes): number | undefined {
  const moments = ring.flatMap((key) => [key.signsFrom, droppedAt(key, times) ?? 0])
  const coming = moments.filter((moment) => moment > now)
  return coming.length > 0 ? Math.min(...coming) : undefined
}

const hourMs = 3_600_000

/**
 * Records that the key signs a token that expires at `until`; returns the same ring if that is recorded already.
 * The time is rounded up, so that few tokens need a write.
 */
export function withTokenUntil(ring: KeyRing, kid: string, until: number, now: number): KeyRing {
  const key = ring.find((each) => each.kid === kid)
  if (!key || key.tokensUntil >= until) return ring
  // The longer the lifetime, the larger the step: a day of hourly tokens needs two dozen writes.
  const step = Math.max(hourMs, 2 ** Math.ceil(Math.log2((until - now) / 4)))
  const tokensUntil = until + step
  return ring.map((each) => (each.kid === kid ? { ...each, tokensUntil } : each))
}

/** The keys of an issuer at one moment. */
export interface KeyState {
  /** Signs new tokens; always one of the published keys. */
  readonly signer: SigningKey
  /** The keys in the key set. */
  readonly published: KeySet
  /** The keys that this server accepts: the published ones, and others that are not published. */
  readonly accepted: KeySet
  /** For how long relying parties may cache the published keys. */
  readonly maxAgeSeconds: number
}

/** Keys that may change while the server runs. */
export interface IssuerKeys {
  readonly current: KeyState
  /** Throws while the keys may be stale: nothing may be signed or published then. */
  requireFresh(): void
  /** Calls back after each change; returns a function that stops it. */
  onChange(listener: () => void): () => void
}
