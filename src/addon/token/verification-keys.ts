import { verify as cryptoVerify, type KeyObject, type X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { type Clock, type Logger, SallyportError, wellKnown } from '../../core/index.ts'
import { fetchDocument, urlProblem } from '../../http/fetch/index.ts'
import {
  type CompactJws,
  isObject,
  isVerifiedBy,
  keyIdOf,
  member,
  parseJsonObject,
  parseJwk,
  RemoteKeySet,
  verificationKey,
} from '../../jose/index.ts'
import {
  CertificateRefused,
  readCertificateFields,
  verifyServerCertificate,
} from '../../pki/trust/index.ts'
import type { CaBundle } from './ca-bundle.ts'
import { AddonTokenRefused } from './claims.ts'
import {
  keyGraceMs,
  keyRefreshMs,
  maxJwksBytes,
  maxKeyLoadMs,
  maxKeyStaleMs,
  minKeyCooldownMs,
} from './limits.ts'
import type { AddonAlgorithm } from './signing-key.ts'

/** A public key that verifies add-on tokens, by its one algorithm. */
export interface AddonVerificationKey {
  readonly alg: AddonAlgorithm
  readonly kid: string
  readonly key: KeyObject
}

/** A public key, ready to verify add-on tokens; throws KeyRefused for kinds that are weak or unknown. */
export function addonVerificationKey(given: KeyObject): AddonVerificationKey {
  if (given.asymmetricKeyType === 'ed25519')
    return { alg: 'EdDSA', kid: keyIdOf(given), key: given }
  const { alg, kid, key } = verificationKey(given)
  if (alg === 'HS256') throw new TypeError('a public key cannot be a shared secret')
  return { alg, kid, key }
}

const ed25519Length = 64

/** Whether the token was signed with this key, by the key's own algorithm and no other. */
export function isAddonSignature(jws: CompactJws, { alg, key }: AddonVerificationKey): boolean {
  if (alg !== 'EdDSA') return isVerifiedBy(jws, { alg, key })
  return (
    jws.header.alg === alg &&
    jws.signature.length === ed25519Length &&
    cryptoVerify(null, jws.input, key, jws.signature)
  )
}

/** Where a verifier finds the key that a token names. */
export interface AddonKeySource {
  /** For messages and metrics. */
  readonly name: string
  /** The key; undefined if the token does not name one that this source could know. Throws AddonTokenRefused. */
  find(
    jws: CompactJws,
  ): AddonVerificationKey | undefined | Promise<AddonVerificationKey | undefined>
  /** Why it can know no key at the moment, if so. */
  readonly problem?: 'keys-unavailable' | undefined
  /** Calls back whenever a key is no longer trusted. */
  onRemoved?(listener: () => void): void
}

/** How keys are fetched and for how long. */
export interface RemoteAddonKeysOptions {
  readonly name: string
  /** Fails rather than returning none. */
  readonly load: (signal: AbortSignal) => Promise<readonly AddonVerificationKey[]>
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Minimum time between two loads because of unknown key ids, or while no keys are available. */
  readonly cooldownMs?: number
}

/** Keys that are fetched periodically, and at once when a token names an unknown one. */
export class RemoteAddonKeys implements AddonKeySource {
  readonly name: string
  readonly #keys: RemoteKeySet<AddonVerificationKey>

  constructor({ name, load, cooldownMs = minKeyCooldownMs, ...host }: RemoteAddonKeysOptions) {
    this.name = name
    this.#keys = new RemoteKeySet({
      ...host,
      log: host.log.child({ keys: name }),
      load: async (signal) => ({
        keys: new Map((await load(signal)).map((key) => [key.kid, key])),
      }),
      timeoutMs: maxKeyLoadMs,
      refreshEveryMs: keyRefreshMs,
      cooldownMs,
      retryMs: cooldownMs,
      graceMs: keyGraceMs,
      maxStaleMs: maxKeyStaleMs,
    })
  }

  /** Loads the keys for the first time and then periodically; without keys, tokens are rejected. */
  start(): Promise<void> {
    return this.#keys.start()
  }

  get problem(): AddonKeySource['problem'] {
    return this.#keys.unavailable ? 'keys-unavailable' : undefined
  }

  async find({ header: { kid } }: CompactJws): Promise<AddonVerificationKey | undefined> {
    if (kid === undefined) return undefined
    const found = (await this.#keys.keysFor(kid)).get(kid)
    if (!found && this.#keys.unavailable)
      throw new AddonTokenRefused('keys-unavailable', `no current keys are known by ${this.name}`)
    return found
  }

  onRemoved(listener: () => void): void {
    this.#keys.onRemoved(() => listener())
  }
}

/**
 * The key of the certificate in front, if that is an API server's: a CA of the bundle vouches for it, it is for
 * servers, bears the name and is no node's. Throws CertificateRefused or KeyRefused.
 */
export function apiServerKey(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[],
  expected: { readonly name: string; readonly now: number },
): AddonVerificationKey {
  verifyServerCertificate(chain, bundle, expected)
  const [leaf] = chain
  if (!leaf) throw new CertificateRefused('MALFORMED', 'there is no certificate')
  const { commonName, organizations } = readCertificateFields(leaf.raw).subject
  // A kubelet asks for the names that it likes, and whoever approves that may not look at them.
  if (organizations.includes(wellKnown.nodes) || commonName.startsWith(wellKnown.nodeUserPrefix))
    throw new CertificateRefused('WRONG_NAME', 'the certificate is that of a node')
  return addonVerificationKey(leaf.publicKey)
}

/** Which API server shows its key by a handshake. */
export interface HandshakeOptions {
  readonly host: string
  readonly port: number
  readonly serverName: string
  readonly bundle: CaBundle
  readonly clock: Clock
}

/** The key with which the API server serves, taken from a handshake that the cluster's CA vouches for. */
export function keyByHandshake(
  { host, port, serverName, bundle, clock }: HandshakeOptions,
  signal: AbortSignal,
): Promise<readonly AddonVerificationKey[]> {
  return new Promise((resolve, reject) => {
    const ca = bundle.certificates.map(String)
    const socket = connect({ host, port, servername: serverName, ca, rejectUnauthorized: true })
    const abort = (): void =>
      void socket.destroy(new Error('the API server did not answer in time'))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    socket.once('error', reject).once('close', () => {
      signal.removeEventListener('abort', abort)
      reject(new Error('the API server closed the connection'))
    })
    socket.once('secureConnect', () => {
      try {
        resolve([keyOf()])
      } catch (error) {
        reject(error)
      }
      socket.destroy()
    })
    // The same rules as for a certificate in a token: TLS alone is content with less.
    const keyOf = (): AddonVerificationKey => {
      const leaf = socket.getPeerX509Certificate()
      if (!leaf) throw new Error('the API server showed no certificate')
      const chain = [leaf, ...(leaf.issuerCertificate ? [leaf.issuerCertificate] : [])]
      return apiServerKey(chain, bundle.certificates, { name: serverName, now: clock.now() })
    }
  })
}

/** A JWK set cannot be asked for at an address where others could answer in its place. */
class JwksAddressUnfit extends SallyportError {
  readonly code = 'JWKS_ADDRESS_UNFIT'
}

/** Where the keys of add-on tokens are published. */
export interface JwksOptions {
  /** https, or http on a loopback address. */
  readonly url: string
  /** The CAs to believe; those of the machine unless given. */
  readonly bundle?: CaBundle
  /** The name in the server's certificate, where the address is another. */
  readonly serverName?: string
  /** A credential to ask with, if the document is not for everybody. */
  readonly readToken?: () => Promise<string>
}

/** Asks for a JWK set; keys in it that cannot verify signatures are left out, and a set without any is a failure. */
export async function keysByJwks(
  options: JwksOptions,
  signal: AbortSignal,
): Promise<readonly AddonVerificationKey[]> {
  const { url, bundle, serverName, readToken } = options
  const problem = urlProblem(url, 'loopback')
  if (problem !== undefined)
    throw new JwksAddressUnfit(
      `the URL of the JWK set ${problem}: it must be an https address, or http on a loopback address`,
    )
  const token = await readToken?.()
  const { status, body } = await fetchDocument(new URL(url), {
    headers: {
      accept: 'application/jwk-set+json, application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    tls: {
      ...(bundle && { ca: bundle.certificates.map(String) }),
      ...(serverName !== undefined && { servername: serverName }),
    },
    allowHttp: 'loopback',
    maxBytes: maxJwksBytes,
    timeoutMs: maxKeyLoadMs,
    signal,
  })
  if (status === 200) return parseKeySet(body)
  throw new Error(`cannot fetch the JWK set: status ${status}`)
}

/** Reads a JWK set; throws unless it holds a key that add-on tokens may be signed with. */
export function parseKeySet(bytes: Uint8Array): readonly AddonVerificationKey[] {
  const document = parseJsonObject(bytes)
  const list: unknown = document && member(document, 'keys')
  const values: readonly unknown[] = Array.isArray(list) ? list : []
  const keys = values.map(parseKey).filter((key) => key !== undefined)
  if (keys.length > 0) return keys
  throw new Error('the document is no JWK set with a key for add-on tokens')
}

function parseKey(value: unknown): AddonVerificationKey | undefined {
  const key = parseJwk(value)
  // By the key itself: the id that somebody writes beside it proves nothing.
  return key && isObject(value) ? addonVerificationKey(key.key) : undefined
}
