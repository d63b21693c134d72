import { type Clock, CommandFailed, kubeTime, type SealedValues } from '../../core/index.ts'
import { type Algorithm, type SigningKey, signingKey } from '../../jose/index.ts'
import { generateRsaKey } from '../../pki/index.ts'
import {
  defaultRotationTimes,
  droppedAt,
  isFull,
  type KeyStage,
  type RingKey,
  signingKeyOf,
  stageOf,
  withOnlyKey,
} from './key-ring.ts'
import {
  decodeRing,
  encodeRing,
  type StoredRing,
  signingKeysName,
  withNewKey,
} from './stored-ring.ts'

/** Where a server shows its signing keys, without their private halves. */
export const signingKeysPath = '/issuer/v1/keys'
/** Where a server is told to rotate them. */
export const keyRotationPath = '/issuer/v1/keys/rotate'

const times = defaultRotationTimes

/** Whose keys, and what time it is. */
export interface KeyKeeper {
  readonly values: SealedValues
  readonly clock: Clock
}

/** A key as its owner sees it; times are milliseconds since 1970. */
export interface KeyReport extends RingKey {
  readonly alg: Algorithm
  readonly stage: KeyStage
  /** When it will be gone, for a key that another has followed. */
  readonly droppedAt?: number
}

/** The signing keys of a cluster, the oldest first. */
export async function readSigningKeys(
  { values, clock }: KeyKeeper,
  signal: AbortSignal,
): Promise<readonly KeyReport[]> {
  const found = await values.get(signingKeysName, signal)
  return reportsOf(storedIn(found?.value), clock.now())
}

/** Publishes a further key, which takes over once every cache has it, or later if copies of the documents need longer. */
export function beginRotation(
  { values, clock }: KeyKeeper,
  signal: AbortSignal,
  showMs: number = times.publishMs,
): Promise<readonly KeyReport[]> {
  const now = clock.now()
  return change(values, now, signal, (stored, key) => {
    const coming = stored.ring.find(({ signsFrom }) => signsFrom > now)
    if (coming)
      throw new CommandFailed(
        'ROTATION_UNDER_WAY',
        `a rotation is under way: key ${coming.kid} begins to sign at ${kubeTime(coming.signsFrom)}`,
        { hint: 'wait until then; `sallyport issuer keys` shows where it stands' },
      )
    if (isFull(stored.ring)) throw tooManyKeys(stored.ring.length)
    return withNewKey(stored, key, now, { ...times, publishMs: Math.max(showMs, times.publishMs) })
  })
}

const tooManyKeys = (count: number): CommandFailed =>
  new CommandFailed(
    'TOO_MANY_KEYS',
    `${count} keys are published, and relying parties read no more`,
    {
      hint: 'a key is dropped when its last token has died, `sallyport issuer keys` says when; shorter lives of tokens (--service-account-max-token-expiration, --no-service-account-extend-token-expiration) keep fewer keys',
    },
  )

/** Drops every key for a new one, at once: for keys that somebody else may have. */
export function replaceKeys(
  { values, clock }: KeyKeeper,
  signal: AbortSignal,
): Promise<readonly KeyReport[]> {
  const now = clock.now()
  return change(values, now, signal, (_stored, key) => ({
    ring: withOnlyKey(key.kid, now),
    keys: new Map([[key.kid, key]]),
  }))
}

async function change(
  values: SealedValues,
  now: number,
  signal: AbortSignal,
  decide: (stored: StoredRing, key: SigningKey) => StoredRing,
): Promise<readonly KeyReport[]> {
  const key = signingKey(await generateRsaKey())
  let changed: StoredRing | undefined
  await values.change(
    signingKeysName,
    (present) => {
      changed = decide(storedIn(present), key)
      return encodeRing(changed)
    },
    signal,
  )
  return changed ? reportsOf(changed, now) : []
}

function storedIn(value: Buffer | undefined): StoredRing {
  if (value) return decodeRing(value)
  throw new CommandFailed('NO_SIGNING_KEYS', 'the cluster keeps no signing keys', {
    hint: 'a server makes the first one when it starts',
  })
}

function reportsOf({ ring, keys }: StoredRing, now: number): KeyReport[] {
  return ring.map((key) => {
    const end = droppedAt(retired(key, ring, now), times)
    return {
      ...key,
      alg: keys.get(key.kid)?.alg ?? 'RS256',
      stage: stageOf(ring, key, now),
      ...(end !== undefined && { droppedAt: end }),
    }
  })
}

/** A key that was followed a moment ago may not be marked so yet. */
function retired(key: RingKey, ring: StoredRing['ring'], now: number): RingKey {
  const signing = signingKeyOf(ring, now)
  const isFollowed = signing !== undefined && key.signsFrom < signing.signsFrom
  return isFollowed ? { retiredAt: signing.signsFrom, ...key } : key
}
