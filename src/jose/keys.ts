import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type KeyObject,
} from 'node:crypto'
import type { Secret } from '../core/index.ts'
import type { Algorithm, AlgorithmKey, KnownAlgorithm } from './algorithms.ts'
import { KeyRefused } from './errors.ts'
import { minRsaBits } from './limits.ts'

/** A public key that verifies tokens, and its key id. */
export interface VerificationKey<Alg extends KnownAlgorithm = Algorithm> extends AlgorithmKey<Alg> {
  readonly kid: string
}

/** A private key that signs tokens, and the id of its public key. */
export interface SigningKey extends AlgorithmKey<Algorithm> {
  readonly kid: string
  readonly publicKey: VerificationKey
}

const algorithmOfCurve = new Map<string, Algorithm>([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])

/** The only algorithm that a key is used with; throws KeyRefused for weak or unsupported keys. */
function algorithmOf(key: KeyObject): Algorithm {
  if (key.asymmetricKeyType === 'rsa') {
    requireStrongRsa(key)
    return 'RS256'
  }
  const curve = key.asymmetricKeyDetails?.namedCurve ?? ''
  const alg = key.asymmetricKeyType === 'ec' ? algorithmOfCurve.get(curve) : undefined
  if (alg) return alg
  const kind = curve || key.asymmetricKeyType || key.type
  throw new KeyRefused(`unsupported key type ${kind}: use RSA, P-256, P-384 or P-521`)
}

function requireStrongRsa(key: KeyObject): void {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < minRsaBits)
    throw new KeyRefused(
      `the RSA key of ${modulusLength} bits is too short: use at least ${minRsaBits} bits`,
    )
  if (publicExponent < 3n || publicExponent % 2n === 0n)
    throw new KeyRefused('the RSA key has an invalid public exponent')
}

/** The id of a public key as in Kubernetes: the SHA-256 of its SubjectPublicKeyInfo. */
export function keyIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('base64url')
}

/** The verification key of a public or private key; throws KeyRefused. */
export function verificationKey(key: KeyObject): VerificationKey {
  const given = key.type === 'private' ? createPublicKey(key) : key
  const alg = algorithmOf(given)
  // Through a JWK, so that a compressed curve point is expanded: the id depends on its form.
  const publicKey = createPublicKey({ key: given.export({ format: 'jwk' }), format: 'jwk' })
  return { alg, key: publicKey, kid: keyIdOf(publicKey) }
}

/** The signing key of a private key; throws KeyRefused. */
export function signingKey(key: KeyObject): SigningKey {
  const publicKey = verificationKey(key)
  return { alg: publicKey.alg, kid: publicKey.kid, key, publicKey }
}

/** A shared secret that signs and verifies with HS256. */
export function hmacKey(secret: Secret, kid: string): VerificationKey {
  return { alg: 'HS256', kid, key: createSecretKey(secret.reveal(), 'utf8') }
}

// Up to the first matching end: the header lines of an encrypted key contain dashes.
const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g
const keyLabels = new Set([
  'RSA PRIVATE KEY',
  'EC PRIVATE KEY',
  'PRIVATE KEY',
  'PUBLIC KEY',
  'RSA PUBLIC KEY',
  'CERTIFICATE',
])

/** The public keys of all blocks of a PEM file, also those of private keys and certificates; `where` is for messages. */
export function publicKeysFromPem(pem: string, where: string): VerificationKey[] {
  const keys = blocksOf(pem, where)
    .filter(({ label }) => keyLabels.has(label))
    .map(({ text, label }) => {
      const key = readKey(() => createPublicKey(text), label, where)
      return inFile(where, () => verificationKey(key))
    })
  if (keys.length === 0) throw new KeyRefused(`${where} contains no key in PEM format`)
  return keys
}

/** The private key of a PEM file; `where` is for messages. */
export function signingKeyFromPem(pem: string, where: string): SigningKey {
  const found = blocksOf(pem, where).find(({ label }) => label.endsWith('PRIVATE KEY'))
  if (!found) throw new KeyRefused(`${where} contains no private key in PEM format`)
  const key = readKey(() => createPrivateKey(found.text), found.label, where)
  return inFile(where, () => signingKey(key))
}

/** Adds the name of the file to errors. */
function inFile<Key>(where: string, make: () => Key): Key {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof KeyRefused)) throw cause
    throw new KeyRefused(`${where}: ${cause.message}`, { cause })
  }
}

function blocksOf(pem: string, where: string): { label: string; text: string }[] {
  const blocks = [...pem.matchAll(block)].map(([text, label = '']) => ({ label, text }))
  // The traditional format of OpenSSL has this word in a header line.
  if (blocks.some(({ label, text }) => label.startsWith('ENCRYPTED') || text.includes('ENCRYPTED')))
    throw new KeyRefused(`${where} contains an encrypted key: remove its passphrase`)
  return blocks
}

function readKey(read: () => KeyObject, label: string, where: string): KeyObject {
  try {
    return read()
  } catch (cause) {
    throw new KeyRefused(`${where} contains an invalid block ${label}`, { cause })
  }
}
