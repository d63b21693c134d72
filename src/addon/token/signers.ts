import { createPrivateKey, generateKeyPairSync, type X509Certificate } from 'node:crypto'
import { changeObject, follow } from '../../client/index.ts'
import {
  type ClusterView,
  isRecord,
  type KubeObject,
  type Logger,
  SallyportError,
  wellKnownKinds,
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

/** The Secret in which a cluster keeps a key that signs nothing but add-on tokens. */
export const addonKeySecret = {
  namespace: 'kube-system',
  name: 'sallyport-addon-token-key',
} as const
const secretType = 'sallyport.dev/addon-token-key'
const where = `the Secret ${addonKeySecret.namespace}/${addonKeySecret.name}`

/** The Secret with the key of add-on tokens cannot be used. */
class AddonKeyInvalid extends SallyportError {
  readonly code = 'ADDON_KEY_INVALID'
}

/** What the key lives on. */
export interface DedicatedKeyOptions {
  readonly view: ClusterView
  readonly log: Logger
  readonly signal: AbortSignal
}

interface Keys {
  readonly signer: AddonSigningKey
  readonly published: readonly VerificationKey[]
}

/**
 * A P-256 key of its own for add-on tokens, shared by all servers through a Secret and published as a JWK set.
 * To rotate it, move `key.pem` to `previous.pem`, which stays published, and put in a new one.
 */
export class DedicatedKeySigner implements AddonSigner {
  #keys: Keys
  #document: Buffer

  private constructor(keys: Keys) {
    this.#keys = keys
    this.#document = renderJwks(keys.published)
  }

  /** Finds the cluster's key or makes it, and follows it until the signal aborts. */
  static async open({ view, log, signal }: DedicatedKeyOptions): Promise<DedicatedKeySigner> {
    const kind = wellKnownKinds.secret
    const asFound = (present: KubeObject | undefined) => (present ? undefined : newSecret())
    await changeObject({ view, kind, key: addonKeySecret }, asFound, signal)
    const secret = await view.get(kind, addonKeySecret, signal)
    if (!secret) throw new AddonKeyInvalid(`${where} is gone again`)
    const signer = new DedicatedKeySigner(keysOf(secret))
    const { namespace, name } = addonKeySecret
    const query = { namespace, fieldSelector: `metadata.name=${name}` }
    const taken = { put: (found: KubeObject) => signer.#take(found, log), remove: () => {} }
    await follow({ view, kind, query, log }, taken, signal).synced
    return signer
  }

  get current(): AddonSigningKey {
    return this.#keys.signer
  }

  /** The JWK set to publish. */
  get document(): Buffer {
    return this.#document
  }

  /** A Secret that somebody has broken must not end what works. */
  #take(secret: KubeObject, log: Logger): void {
    try {
      this.#keys = keysOf(secret)
      this.#document = renderJwks(this.#keys.published)
    } catch (err) {
      log.error({ err }, 'the new key of add-on tokens is unfit, the old one stays')
    }
  }
}

function newSecret(): KubeObject {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return {
    apiVersion: 'v1',
    kind: wellKnownKinds.secret.kind,
    metadata: { ...addonKeySecret },
    type: secretType,
    data: { 'key.pem': Buffer.from(pem).toString('base64') },
  }
}

function keysOf({ data }: KubeObject): Keys {
  const text = (name: string): string | undefined => {
    const encoded = isRecord(data) ? data[name] : undefined
    return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : undefined
  }
  const pem = text('key.pem')
  const previous = text('previous.pem')
  if (pem === undefined) throw new AddonKeyInvalid(`${where} has no key.pem`)
  const { key, publicKey } = signingKeyFromPem(pem, `${where}, key.pem`)
  return {
    signer: addonSigningKey(key),
    published: [
      publicKey,
      ...(previous === undefined ? [] : publicKeysFromPem(previous, `${where}, previous.pem`)),
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
