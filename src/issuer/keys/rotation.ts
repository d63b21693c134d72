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

/** The path at which a server reports its signing keys, without private keys. */
export const signingKeysPath = '/issuer/v1/keys'
/** The path at which a rotation is requested. */
export const keyRotationPath = '/issuer/v1/keys/rotate'

const times = defaultRotationTimes

/** Where the keys are stored. */
export interface KeyKeeper {
  readonly values: SealedValues
  readonly clock: Clock
}

/** A key in a report; times are milliseconds since 1970. */
export interface KeyReport extends RingKey {
  readonly alg: Algorithm
  readonly stage: KeyStage
  /** When a retired key is removed. */
  readonly droppedAt?: number
}

/** The signing keys of a cluster, oldest first. */
export async function readSigningKeys(
  { values, clock }: KeyKeeper,
  signal: AbortSignal,
): Promise<readonly KeyReport[]> {
  const found = await values.get(signingKeysName, signal)
  return reportsOf(storedIn(found?.value), clock.now())
}

/** Publishes a new key, which signs after `showMs`, when all caches have it. */
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
        `a rotation is in progress: key ${coming.kid} begins to sign at ${kubeTime(coming.signsFrom)}`,
        { hint: 'wait until then; `sallyport issuer keys` shows its stage' },
      )
    if (isFull(stored.ring)) throw tooManyKeys(stored.ring.length)
    return withNewKey(stored, key, now, { ...times, publishMs: Math.max(showMs, times.publishMs) })
  })
}

const tooManyKeys = (count: number): CommandFailed =>
  new CommandFailed(
    'TOO_MANY_KEYS',
    `${count} keys are published, which is the maximum that relying parties read`,
    {
      hint: 'a key is removed when its last token has expired, `sallyport issuer keys` shows when; shorter lifetimes of tokens (--service-account-max-token-expiration, --no-service-account-extend-token-expiration) keep fewer keys',
    },
  )

/** Replaces all keys by a new one at once, for compromised keys. */
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
  throw new CommandFailed('NO_SIGNING_KEYS', 'the cluster has no signing keys', {
    hint: 'a server creates the first one when it starts',
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

/** A key whose successor has just begun to sign may not be marked yet. */
function retired(key: RingKey, ring: StoredRing['ring'], now: number): RingKey {
  const signing = signingKeyOf(ring, now)
  const hasSuccessor = signing !== undefined && key.signsFrom < signing.signsFrom
  return hasSuccessor ? { retiredAt: signing.signsFrom, ...key } : key
}
