import { isRecord, type KubeObject, SallyportError, Secret } from '../../core/index.ts'
import { KeySet, type SigningKey, signingKeyFromPem } from '../../jose/index.ts'
import { type KeyRing, type RingKey, type RotationTimes, withNextKey } from './key-ring.ts'

/** The sealed value with the signing keys of a cluster. */
export const signingKeysName = 'signing-keys'
const formatVersion = 1

/** A ring with its private keys. */
export interface StoredRing {
  readonly ring: KeyRing
  readonly keys: ReadonlyMap<string, SigningKey>
}

/** The stored signing keys are invalid. */
class SigningKeysInvalid extends SallyportError {
  readonly code = 'SIGNING_KEYS_INVALID'

  constructor(why: string) {
    super(
      `the signing keys of the cluster are invalid: ${why}; restore a backup, or start the server ` +
        'with --service-account-signing-key-file and the file pki/sa.key of its data directory',
    )
  }
}

/** The Secret with the signing keys in versions without sealed values. */
export const oldSigningKeys = {
  key: { namespace: 'kube-system', name: 'sallyport-signing-keys' },
  type: 'sallyport.dev/signing-keys',
  name: signingKeysName,
  /** The sealed value of a Secret; throws if its keys are invalid. */
  read: ({ data }: KubeObject): Buffer => {
    const encoded = isRecord(data) ? data['keys.json'] : undefined
    const value = Buffer.from(typeof encoded === 'string' ? encoded : '', 'base64')
    decodeRing(value)
    return value
  },
} as const

/** The bytes to seal. */
export function encodeRing(stored: StoredRing): Buffer {
  const keys = stored.ring.map((key) => ({ ...key, pem: pemOf(stored, key).reveal() }))
  return Buffer.from(JSON.stringify({ version: formatVersion, keys }))
}

function pemOf({ keys }: StoredRing, { kid }: RingKey): Secret {
  const key = keys.get(kid)
  if (!key) throw new Error('a key of the ring is missing')
  return new Secret(String(key.key.export({ type: 'pkcs8', format: 'pem' })))
}

/** Reads a ring from its bytes; throws `SigningKeysInvalid`. */
export function decodeRing(value: Buffer): StoredRing {
  const content = parseJson(value.toString())
  if (!isRecord(content) || content['version'] !== formatVersion || !Array.isArray(content['keys']))
    throw new SigningKeysInvalid(`the format version is not ${formatVersion}`)
  const entries = content['keys'].map((entry: unknown, index) => parseEntry(entry, index))
  if (entries.length === 0) throw new SigningKeysInvalid('there is no key')
  return {
    ring: entries.map(({ ringKey }) => ringKey).toSorted((x, y) => x.signsFrom - y.signsFrom),
    keys: new Map(entries.map(({ key }) => [key.kid, key])),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseEntry(
  entry: unknown,
  index: number,
): { readonly ringKey: RingKey; readonly key: SigningKey } {
  const where = `key ${index + 1}`
  const fields = isRecord(entry) ? entry : {}
  const time = (name: string): number => {
    const value = fields[name]
    if (typeof value === 'number' && Number.isFinite(value)) return value
    throw new SigningKeysInvalid(`${where} has no time ${name}`)
  }
  const { kid, pem, retiredAt } = fields
  const key = typeof pem === 'string' ? readPem(pem, where) : undefined
  if (!key || key.kid !== kid) throw new SigningKeysInvalid(`${where} does not match its key id`)
  return {
    key,
    ringKey: {
      kid: key.kid,
      publishedAt: time('publishedAt'),
      signsFrom: time('signsFrom'),
      ...(retiredAt !== undefined && { retiredAt: time('retiredAt') }),
      tokensUntil: time('tokensUntil'),
    },
  }
}

function readPem(pem: string, where: string): SigningKey {
  try {
    return signingKeyFromPem(pem, where)
  } catch {
    throw new SigningKeysInvalid(`${where} is not a valid private key`)
  }
}

/** The public keys of a ring. */
export const publishedKeys = ({ ring, keys }: StoredRing): KeySet =>
  new KeySet(ring.flatMap(({ kid }) => keys.get(kid)?.publicKey ?? []))

/** The ring with a new key, which is published at once and signs later. */
export const withNewKey = (
  { ring, keys }: StoredRing,
  key: SigningKey,
  now: number,
  times: RotationTimes,
): StoredRing => ({
  ring: withNextKey(ring, key.kid, now, times),
  keys: new Map([...keys, [key.kid, key]]),
})
