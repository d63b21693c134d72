import { type KeyObject, verify } from 'node:crypto'

interface SignatureAlgorithm {
  readonly keyType: string
  /** Absent where the key type implies it. */
  readonly hash?: string
}

const algorithms: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  ['1.2.840.113549.1.1.11', { keyType: 'rsa', hash: 'sha256' }],
  ['1.2.840.113549.1.1.12', { keyType: 'rsa', hash: 'sha384' }],
  ['1.2.840.113549.1.1.13', { keyType: 'rsa', hash: 'sha512' }],
  ['1.2.840.10045.4.3.2', { keyType: 'ec', hash: 'sha256' }],
  ['1.2.840.10045.4.3.3', { keyType: 'ec', hash: 'sha384' }],
  ['1.2.840.10045.4.3.4', { keyType: 'ec', hash: 'sha512' }],
  ['1.3.101.112', { keyType: 'ed25519' }],
])

/** Whether a signature over bytes is by this key; `undefined` if the algorithm is not one that we accept. */
export function isSignedBy(
  key: KeyObject,
  algorithmOid: string,
  bytes: Buffer,
  signature: Buffer,
): boolean | undefined {
  const algorithm = algorithms.get(algorithmOid)
  if (!algorithm) return undefined
  if (algorithm.keyType !== key.asymmetricKeyType) return false
  return verify(algorithm.hash, bytes, key, signature)
}
