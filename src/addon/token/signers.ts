import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type X509Certificate,
} from 'node:crypto'
import {
  isRecord,
  type KubeObject,
  type Logger,
  SallyportError,
  type SealedValues,
} from '../../core/index.ts'
import {
  KeyRefused,
  publicKeysFromPem,
  renderJwks,
  signingKeyFromPem,
  type VerificationKey,
} from '../../jose/index.ts'
import { CertificateRefused, parseCertificates, type ServingMaterial } from '../../pki/index.ts'
import { apiServerName } from './claims.ts'
import { type AddonSigner, type AddonSigningKey, addonSigningKey } from './signing-key.ts'
import { apiServerKey } from './verification-keys.ts'

/** The sealed value in which a cluster keeps a key that signs nothing but add-on tokens. */
const addonKeyName = 'addon-token-key'

/** The key of add-on tokens cannot be used. */
class AddonKeyInvalid extends SallyportError {
  readonly code = 'ADDON_KEY_INVALID'
}

/** What the key lives on. */
export interface DedicatedKeyOptions {
  readonly values: SealedValues
  readonly log: Logger
  readonly signal: AbortSignal
}

/** A private key in PEM form, and the public half of the one before, which stays published. */
interface StoredKey {
  readonly key: string
  readonly previous?: string
}

interface Keys {
  readonly signer: AddonSigningKey
  readonly published: readonly VerificationKey[]
}

/** The Secret in which clusters kept this key before it was sealed. */
export const oldAddonKey = {
  key: { namespace: 'kube-system', name: 'sallyport-addon-token-key' },
  type: 'sallyport.dev/addon-token-key',
  name: addonKeyName,
  /** The sealed value of a Secret; throws if the key in it cannot be used. */
  read: ({ data }: KubeObject): Buffer => {
    const text = (name: string): string | undefined => {
      const encoded = isRecord(data) ? data[name] : undefined
      return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : undefined
    }
    const previous = text('previous.pem')
    const value = encode({
      key: text('key.pem') ?? '',
      ...(previous !== undefined && { previous }),
    })
    decode(value)
    return value
  },
} as const

/** A P-256 key of its own for add-on tokens, shared by all servers and published as a JWK set. */
export class DedicatedKeySigner implements AddonSigner {
  readonly #options: DedicatedKeyOptions
  #keys: Keys
  #document: Buffer

  private constructor(options: DedicatedKeyOptions, keys: Keys) {
    this.#options = options
    this.#keys = keys
    this.#document = renderJwks(keys.published)
  }

  /** Finds the cluster's key or makes it, and follows it until the signal aborts. */
  static async open(options: DedicatedKeyOptions): Promise<DedicatedKeySigner> {
    const { values, signal } = options
    const asFound = (present: Buffer | undefined) =>
      present ? undefined : encode({ key: newKey() })
    await values.change(addonKeyName, asFound, signal)
    const read = async () => (await values.get(addonKeyName, signal))?.value ?? Buffer.alloc(0)
    const signer = new DedicatedKeySigner(options, decode(await read()))
    values.watch(addonKeyName, ({ value }) => signer.#take(value), signal)
    // Once more, for a change between the first reading and the watch.
    signer.#take(await read())
    return signer
  }

  get current(): AddonSigningKey {
    return this.#keys.signer
  }

  /** The JWK set to publish. */
  get document(): Buffer {
    return this.#document
  }

  /** Signs with a new key from now on; the one before stays published until the next rotation. */
  async rotate(signal: AbortSignal): Promise<void> {
    const key = newKey()
    let changed: Buffer = Buffer.alloc(0)
    await this.#options.values.change(
      addonKeyName,
      (present) => {
        const before = createPublicKey(parse(present ?? Buffer.alloc(0)).key)
        const previous = String(before.export({ type: 'spki', format: 'pem' }))
        changed = encode({ key, previous })
        return changed
      },
      signal,
    )
    this.#take(changed)
  }

  /** A value that is damaged must not end what works. */
  #take(value: Buffer): void {
    try {
      this.#keys = decode(value)
      this.#document = renderJwks(this.#keys.published)
    } catch (err) {
      this.#options.log.error({ err }, 'the new key of add-on tokens is unfit, the old one stays')
    }
  }
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

const encode = (stored: StoredKey): Buffer => Buffer.from(JSON.stringify({ version: 1, ...stored }))

function parse(value: Buffer): StoredKey {
  try {
    const content: unknown = JSON.parse(value.toString())
    if (isRecord(content) && content['version'] === 1 && typeof content['key'] === 'string') {
      const { key, previous } = content
      return { key, ...(typeof previous === 'string' && { previous }) }
    }
  } catch {
    // Without its cause: a parser's message may quote what it read.
  }
  throw new AddonKeyInvalid('the key of add-on tokens is not of format version 1')
}

function decode(value: Buffer): Keys {
  const { key: pem, previous } = parse(value)
  const { key, publicKey } = signingKeyFromPem(pem, 'the key of add-on tokens')
  return {
    signer: addonSigningKey(key),
    published: [
      publicKey,
      ...(previous === undefined
        ? []
        : publicKeysFromPem(previous, 'the previous key of add-on tokens')),
    ],
  }
}

/**
 * Signs with the key that the API server serves with, as the proposal has it, and shows its certificate, so that
 * whoever has the cluster's CA can verify. A certificate that was replaced is followed from the next token on.
 */
export class ServingKeySigner implements AddonSigner {
  readonly #serving: { readonly current: ServingMaterial }
  #material: ServingMaterial | undefined
  #key: AddonSigningKey | undefined

  constructor(serving: { readonly current: ServingMaterial }) {
    this.#serving = serving
  }

  get current(): AddonSigningKey {
    const material = this.#serving.current
    if (!this.#key || material !== this.#material) {
      this.#key = keyOf(material)
      this.#material = material
    }
    return this.#key
  }
}

function keyOf({ certPem, keyPem }: ServingMaterial): AddonSigningKey {
  const shown = parseCertificates(certPem).filter((certificate) => !isRoot(certificate))
  return addonSigningKey(
    createPrivateKey(keyPem.reveal()),
    shown.map((certificate) => certificate.raw.toString('base64')),
  )
}

/** Verifiers trust their own copy of it or none: it would only make tokens longer. */
const isRoot = (certificate: X509Certificate): boolean =>
  certificate.ca && certificate.checkIssued(certificate)

/** Why guards that go by the cluster's CA would refuse all tokens signed with this key; `undefined` if they would not. */
export function problemOfServingKey(
  { certPem }: Pick<ServingMaterial, 'certPem'>,
  caPem: string,
  now: number,
): string | undefined {
  try {
    apiServerKey(parseCertificates(certPem), parseCertificates(caPem), { name: apiServerName, now })
    return undefined
  } catch (error) {
    if (error instanceof CertificateRefused || error instanceof KeyRefused) return error.message
    throw error
  }
}
