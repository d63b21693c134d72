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

/** A public key that verifies, with the id by which tokens name it. */
export interface VerificationKey<Alg extends KnownAlgorithm = Algorithm> extends AlgorithmKey<Alg> {
  readonly kid: string
}

/** A private key that signs, with the id of its public half. */
export interface SigningKey extends AlgorithmKey<Algorithm> {
  readonly kid: string
  readonly publicKey: VerificationKey
}

const smallestRsaBits = 2048
const algorithmOfCurve = new Map<string, Algorithm>([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])

/** The only algorithm that a key is used with; refuses keys that are weak or of another kind. */
function algorithmOf(key: KeyObject): Algorithm {
  if (key.asymmetricKeyType === 'rsa') {
    refuseWeakRsa(key)
    return 'RS256'
  }
  const curve = key.asymmetricKeyDetails?.namedCurve ?? ''
  const alg = key.asymmetricKeyType === 'ec' ? algorithmOfCurve.get(curve) : undefined
  if (alg) return alg
  const kind = curve || key.asymmetricKeyType || key.type
  throw new KeyRefused(`a key of the kind ${kind} cannot be used: take RSA, P-256, P-384 or P-521`)
}

function refuseWeakRsa(key: KeyObject): void {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < smallestRsaBits)
    throw new KeyRefused(
      `an RSA key of ${modulusLength} bits is too short: take one of ${smallestRsaBits} or more`,
    )
  if (publicExponent < 3n || publicExponent % 2n === 0n)
    throw new KeyRefused('the RSA key has a public exponent that cannot be right')
}

/** The id of a public key as Kubernetes has it: the SHA-256 of its SubjectPublicKeyInfo. */
export function keyIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('base64url')
}

/** A public key, ready to verify. */
export function verificationKey(key: KeyObject): VerificationKey {
  const given = key.type === 'private' ? createPublicKey(key) : key
  const alg = algorithmOf(given)
  // By way of a JWK a compressed curve point becomes the usual form, on which the id depends.
  const publicKey = createPublicKey({ key: given.export({ format: 'jwk' }), format: 'jwk' })
  return { alg, key: publicKey, kid: keyIdOf(publicKey) }
}

/** A private key, ready to sign. */
export function signingKey(key: KeyObject): SigningKey {
  const publicKey = verificationKey(key)
  return { alg: publicKey.alg, kid: publicKey.kid, key, publicKey }
}

/** A shared secret, ready to sign and to verify with HS256. */
export function hmacKey(secret: Secret, kid: string): VerificationKey {
  return { alg: 'HS256', kid, key: createSecretKey(secret.reveal(), 'utf8') }
}

// Up to the first end of its own: the lines above an encrypted key have dashes in them.
const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g
const keyLabels = new Set([
  'RSA PRIVATE KEY',
  'EC PRIVATE KEY',
  'PRIVATE KEY',
  'PUBLIC KEY',
  'RSA PUBLIC KEY',
  'CERTIFICATE',
])

/** The public keys of all blocks of a PEM file, private keys and certificates included; `where` is for messages. */
export function publicKeysFromPem(pem: string, where: string): VerificationKey[] {
  const keys = blocksOf(pem, where)
    .filter(({ label }) => keyLabels.has(label))
    .map(({ text, label }) => {
      const key = readKey(() => createPublicKey(text), label, where)
      return inFile(where, () => verificationKey(key))
    })
  if (keys.length === 0) throw new KeyRefused(`${where} has no key in PEM form`)
  return keys
}

/** The private key of a PEM file; `where` is for messages. */
export function signingKeyFromPem(pem: string, where: string): SigningKey {
  const found = blocksOf(pem, where).find(({ label }) => label.endsWith('PRIVATE KEY'))
  if (!found) throw new KeyRefused(`${where} has no private key in PEM form`)
  const key = readKey(() => createPrivateKey(found.text), found.label, where)
  return inFile(where, () => signingKey(key))
}

/** Says of which file a key is that was refused. */
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
  // The old form of OpenSSL says so in a line of its own.
  if (blocks.some(({ label, text }) => label.startsWith('ENCRYPTED') || text.includes('ENCRYPTED')))
    throw new KeyRefused(`${where} has a key with a passphrase, which cannot be used`)
  return blocks
}

function readKey(read: () => KeyObject, label: string, where: string): KeyObject {
  try {
    return read()
  } catch (cause) {
    throw new KeyRefused(`${where} has a block ${label} that cannot be read`, { cause })
  }
}
