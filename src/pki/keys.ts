import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { CommandFailed, Secret } from '../core/index.ts'
import { readKeyFile, readPkiFile, writeKeyFile, writePublicFile } from './pki-files.ts'

const generate = promisify(generateKeyPair)

/** A new P-256 key, the kind that all our certificates have. */
export async function generateEcKey(): Promise<KeyObject> {
  return (await generate('ec', { namedCurve: 'P-256' })).privateKey
}

/** A new RSA key of 2048 bits: what every OIDC library can verify. */
export async function generateRsaKey(): Promise<KeyObject> {
  return (await generate('rsa', { modulusLength: 2048 })).privateKey
}

/** A private key as PKCS#8 PEM. */
export function privateKeyPem(key: KeyObject): Secret {
  return new Secret(key.export({ type: 'pkcs8', format: 'pem' }).toString())
}

/** The public half of a key as PEM. */
export function publicKeyPem(key: KeyObject): string {
  return publicKeyOf(key).export({ type: 'spki', format: 'pem' }).toString()
}

/** The public half of a key that may be either half. */
export function publicKeyOf(key: KeyObject): KeyObject {
  return key.type === 'private' ? createPublicKey(key) : key
}

const supportedCurves = new Set(['prime256v1', 'secp384r1', 'secp521r1'])

/** Why certificates for this public key are not issued, or `undefined` if they are. */
export function weaknessOfKey(key: KeyObject): string | undefined {
  const { asymmetricKeyType: type = 'unknown', asymmetricKeyDetails: details } = key
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0
    if (bits < 2048) return `an RSA key of ${bits} bits is too short: use at least 2048`
    // A huge modulus costs those who verify far more than the one who made it.
    return bits > 8192 ? `an RSA key of ${bits} bits is too long: use at most 8192` : undefined
  }
  if (type === 'ec') {
    const curve = details?.namedCurve ?? 'unknown'
    if (supportedCurves.has(curve)) return undefined
    return `the curve ${curve} is not supported: use P-256, P-384 or P-521`
  }
  if (type === 'ed25519') return undefined
  return `keys of type ${type} are not supported: use RSA, ECDSA or Ed25519`
}

/** The key that signs service account tokens, and its files. */
export interface ServiceAccountKey {
  readonly key: KeyObject
  readonly keyFile: string
  readonly publicFile: string
}

/** Finds the service account key again and checks it, or makes it. */
export async function openServiceAccountKey(
  keyFile: string,
  publicFile: string,
): Promise<ServiceAccountKey> {
  const [found, publicText] = await Promise.all([readKeyFile(keyFile), readPkiFile(publicFile)])
  if (!found && publicText !== undefined) {
    throw new CommandFailed(
      'PKI_INCOMPLETE',
      `${keyFile} is missing, but its public half ${publicFile} is there`,
      { hint: `restore ${keyFile} from a backup, or remove ${publicFile} to start with a new key` },
    )
  }
  const key = found ?? (await generateRsaKey())
  if (!found) await writeKeyFile(keyFile, privateKeyPem(key).reveal())
  if (publicText === undefined) await writePublicFile(publicFile, publicKeyPem(key))
  else checkPublicHalf(publicText, key, { keyFile, publicFile })
  return { key, keyFile, publicFile }
}

function checkPublicHalf(
  text: string,
  key: KeyObject,
  files: { readonly keyFile: string; readonly publicFile: string },
): void {
  if (readPublicKey(text) === publicKeyPem(key)) return
  throw new CommandFailed(
    'PKI_MISMATCH',
    `${files.publicFile} is not the public half of ${files.keyFile}`,
    {
      hint: `remove ${files.publicFile} to have it written anew, or restore the pair from one backup`,
    },
  )
}

function readPublicKey(text: string): string | undefined {
  try {
    return publicKeyPem(createPublicKey(text))
  } catch {
    return undefined
  }
}
