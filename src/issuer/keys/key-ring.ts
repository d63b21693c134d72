import type { KeySet, SigningKey } from '../../jose/index.ts'

/** A signing key in the course of its life. Times are milliseconds since 1970. */
export interface RingKey {
  readonly kid: string
  /** When outsiders could see it first. */
  readonly publishedAt: number
  /** From when on it signs; everybody who caches the key set has it by then. */
  readonly signsFrom: number
  /** When the next key took over. */
  readonly retiredAt?: number
  /** No token that it has signed lives longer than this. */
  readonly tokensUntil: number
}

/** All keys that are published, in the order in which they sign. */
export type KeyRing = readonly RingKey[]

/** Where a key stands: shown but not used, in use, or only kept for the tokens that it has signed. */
export type KeyStage = 'next' | 'signing' | 'retired'

/** How long the stages last. */
export interface RotationTimes {
  /** For how long others keep the key set without asking again, with a margin for those who are late. */
  readonly publishMs: number
  /** For how long a server may use keys that it cannot read again; part of the margin above. */
  readonly maxStaleMs: number
  /** How much longer than its last token a key is kept, since clocks differ. */
  readonly marginMs: number
}

/** The hour that documents may be cached, the slowest usual relying parties (20 minutes), and servers that are late. */
export const defaultRotationTimes: RotationTimes = {
  publishMs: 90 * 60_000,
  maxStaleMs: 10 * 60_000,
  marginMs: 10 * 60_000,
}

/** As many keys as relying parties read; AWS and ours stop there. */
const mostKeys = 100

/** Whether a further key would be one too many. */
export const isFull = (ring: KeyRing): boolean => ring.length >= mostKeys

/** The key that signs: the youngest whose time has come. */
export function signingKeyOf(ring: KeyRing, now: number): RingKey | undefined {
  return ring.findLast(({ signsFrom }) => signsFrom <= now)
}

/** Where a key of the ring stands. */
export function stageOf(ring: KeyRing, key: RingKey, now: number): KeyStage {
  const signing = signingKeyOf(ring, now)
  if (signing?.kid === key.kid) return 'signing'
  return key.signsFrom > now ? 'next' : 'retired'
}

/** Publishes a new key; it signs once everybody can have seen it. A ring without keys signs at once. */
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

/** After a theft: only the new key counts, at once. Every token that exists is dead. */
export const withOnlyKey = (kid: string, now: number): KeyRing => [
  { kid, publishedAt: now, signsFrom: now, tokensUntil: now },
]

/** The ring as time has changed it: keys that were followed are retired, those whose last token has died are gone. */
export function advanced(ring: KeyRing, now: number, times: RotationTimes): KeyRing {
  const signing = signingKeyOf(ring, now)
  return ring
    .map((key) => {
      const isFollowed =
        key.retiredAt === undefined && signing !== undefined && key.signsFrom < signing.signsFrom
      return isFollowed ? { ...key, retiredAt: signing.signsFrom } : key
    })
    .filter((key) => now < (droppedAt(key, times) ?? Number.POSITIVE_INFINITY))
}

/** When the last key was published: the next one is due a period later. */
export const lastPublishedAt = (ring: KeyRing): number =>
  Math.max(...ring.map(({ publishedAt }) => publishedAt))

/** When a key that has been followed will be dropped; undefined for others. */
export const droppedAt = (
  { retiredAt, tokensUntil }: RingKey,
  times: RotationTimes,
): number | undefined =>
  retiredAt === undefined ? undefined : Math.max(retiredAt, tokensUntil) + times.marginMs

/** When time will change the ring next; undefined if it stays as it is. */
export function nextChangeAt(ring: KeyRing, now: number, times: RotationTimes): number | undefined {
  const moments = ring.flatMap((key) => [key.signsFrom, droppedAt(key, times) ?? 0])
  const coming = moments.filter((moment) => moment > now)
  return coming.length > 0 ? Math.min(...coming) : undefined
}

const hourMs = 3_600_000

/**
 * Notes that the key has signed a token that lives until `until`; the same ring if that is noted already.
 * The note is rounded up, so that it is written seldom and always before the token is handed out.
 */
export function withTokenUntil(ring: KeyRing, kid: string, until: number, now: number): KeyRing {
  const key = ring.find((each) => each.kid === kid)
  if (!key || key.tokensUntil >= until) return ring
  // The longer the token, the coarser the step: a day of hourly tokens costs two dozen writes, not one per token.
  const step = Math.max(hourMs, 2 ** Math.ceil(Math.log2((until - now) / 4)))
  const tokensUntil = until + step
  return ring.map((each) => (each.kid === kid ? { ...each, tokensUntil } : each))
}

/** The keys of an issuer at one moment. */
export interface KeyState {
  /** Signs new tokens; always among the published keys. */
  readonly signer: SigningKey
  /** What outsiders are shown. */
  readonly published: KeySet
  /** What this server believes itself: the published keys, and any that are kept to ourselves. */
  readonly accepted: KeySet
  /** How long outsiders may keep the published keys, in seconds. */
  readonly maxAgeSeconds: number
}

/** Keys that may change while the server runs. */
export interface IssuerKeys {
  readonly current: KeyState
  /** Throws while the keys are stale: nothing may be signed or published then. */
  requireFresh(): void
  /** Called after each change; returns how to stop listening. */
  onChange(listener: () => void): () => void
}
