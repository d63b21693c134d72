import {
  isRecord,
  type KubeObject,
  SallyportError,
  Secret,
  wellKnownKinds,
} from '../../core/index.ts'
import { KeySet, type SigningKey, signingKeyFromPem } from '../../jose/index.ts'
import { type KeyRing, type RingKey, type RotationTimes, withNextKey } from './key-ring.ts'

/** The Secret in which a cluster keeps its signing keys. */
export const signingKeysKey = { namespace: 'kube-system', name: 'sallyport-signing-keys' } as const
const secretType = 'sallyport.dev/signing-keys'
const dataKey = 'keys.json'
const formatVersion = 1

/** A ring with its private keys. */
export interface StoredRing {
  readonly ring: KeyRing
  readonly keys: ReadonlyMap<string, SigningKey>
}

/** The Secret with the signing keys is not as we write it. */
class SigningKeysInvalid extends SallyportError {
  readonly code = 'SIGNING_KEYS_INVALID'

  constructor(why: string) {
    super(
      `the Secret ${signingKeysKey.namespace}/${signingKeysKey.name} cannot be used: ${why}; ` +
        'start the server with --service-account-signing-key-file and the file pki/sa.key of its data directory, ' +
        'mend the Secret or delete it (tokens of all keys but that one die then), and start it as before',
    )
  }
}

/** Writes a ring as a Secret; `present` is the Secret as it is now. */
export function renderRing(stored: StoredRing, present?: KubeObject): KubeObject {
  const keys = stored.ring.map((key) => ({ ...key, pem: pemOf(stored, key).reveal() }))
  const text = JSON.stringify({ version: formatVersion, keys })
  return {
    apiVersion: 'v1',
    kind: wellKnownKinds.secret.kind,
    metadata: present?.metadata ?? { ...signingKeysKey },
    type: secretType,
    data: { [dataKey]: Buffer.from(text).toString('base64') },
  }
}

function pemOf({ keys }: StoredRing, { kid }: RingKey): Secret {
  const key = keys.get(kid)
  if (!key) throw new Error('a key of the ring is missing')
  return new Secret(String(key.key.export({ type: 'pkcs8', format: 'pem' })))
}

/** Whether a newer server has written it, in a form that this one does not know. */
export function isOfNewerServer(secret: KubeObject): boolean {
  const content = contentOf(secret)
  const version = isRecord(content) ? content['version'] : undefined
  return typeof version === 'number' && version > formatVersion
}

function contentOf({ data }: KubeObject): unknown {
  const encoded = isRecord(data) ? data[dataKey] : undefined
  return typeof encoded === 'string'
    ? parseJson(Buffer.from(encoded, 'base64').toString())
    : undefined
}

/** Reads a ring out of its Secret; throws SigningKeysInvalid. */
export function parseRing(secret: KubeObject): StoredRing {
  const content = contentOf(secret)
  if (!isRecord(content) || content['version'] !== formatVersion || !Array.isArray(content['keys']))
    throw new SigningKeysInvalid(`${dataKey} is not of format version ${formatVersion}`)
  const entries = content['keys'].map((entry: unknown, index) => parseEntry(entry, index))
  if (entries.length === 0) throw new SigningKeysInvalid('it holds no key')
  return {
    ring: entries.map(({ ringKey }) => ringKey).toSorted((a, b) => a.signsFrom - b.signsFrom),
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
  if (!key || key.kid !== kid) throw new SigningKeysInvalid(`${where} is not the one it says it is`)
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
    throw new SigningKeysInvalid(`${where} cannot be read`)
  }
}

/** The public halves of all keys of a ring. */
export const publishedKeys = ({ ring, keys }: StoredRing): KeySet =>
  new KeySet(ring.flatMap(({ kid }) => keys.get(kid)?.publicKey ?? []))

/** The ring with a further key, which is published at once and signs later. */
export const withNewKey = (
  { ring, keys }: StoredRing,
  key: SigningKey,
  now: number,
  times: RotationTimes,
): StoredRing => ({
  ring: withNextKey(ring, key.kid, now, times),
  keys: new Map([...keys, [key.kid, key]]),
})
