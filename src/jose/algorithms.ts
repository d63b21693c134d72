import {
  constants,
  createHmac,
  sign as cryptoSign,
  verify as cryptoVerify,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'

/** The ways to sign that are our own; each key has exactly one. */
export type Algorithm = 'RS256' | 'ES256' | 'ES384' | 'ES512' | 'HS256'

/** All that an RSA key of somebody else may be used with. */
export const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const

/** The ways to sign that we know, our own and those of others. */
export type KnownAlgorithm = Algorithm | (typeof rsaAlgorithms)[number]

interface Scheme {
  readonly digest: string
  readonly rsa?: typeof pkcs1 | typeof pss
  /** Bytes of a signature, where the algorithm fixes them. */
  readonly length?: number
}

const pkcs1 = { padding: constants.RSA_PKCS1_PADDING }
// RFC 7518 section 3.5: the salt is as long as the digest.
const pss = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
}

const schemes: Readonly<Record<KnownAlgorithm, Scheme>> = {
  RS256: { digest: 'sha256', rsa: pkcs1 },
  RS384: { digest: 'sha384', rsa: pkcs1 },
  RS512: { digest: 'sha512', rsa: pkcs1 },
  PS256: { digest: 'sha256', rsa: pss },
  PS384: { digest: 'sha384', rsa: pss },
  PS512: { digest: 'sha512', rsa: pss },
  ES256: { digest: 'sha256', length: 64 },
  ES384: { digest: 'sha384', length: 96 },
  ES512: { digest: 'sha512', length: 132 },
  HS256: { digest: 'sha256', length: 32 },
}

/** A key with the one algorithm that it may be used with. */
export interface AlgorithmKey<Alg extends KnownAlgorithm = KnownAlgorithm> {
  readonly alg: Alg
  readonly key: KeyObject
}

const mac = ({ key }: AlgorithmKey, input: Uint8Array): Buffer =>
  createHmac('sha256', key).update(input).digest()

const optionsOf = ({ key, alg }: AlgorithmKey) => {
  const { rsa } = schemes[alg]
  return rsa ? { key, ...rsa } : { key, dsaEncoding: 'ieee-p1363' as const }
}

/** Signs at once, on this thread. */
export function signBytes(signer: AlgorithmKey, input: Uint8Array): Buffer {
  if (signer.alg === 'HS256') return mac(signer, input)
  return cryptoSign(schemes[signer.alg].digest, input, optionsOf(signer))
}

/** These take less time than the way to another thread and back. */
const quick: readonly KnownAlgorithm[] = ['HS256', 'ES256']

/** Signs without holding up others: what takes long, as RSA does, is done on the thread pool. */
export async function signBytesAside(signer: AlgorithmKey, input: Uint8Array): Promise<Buffer> {
  if (quick.includes(signer.alg)) return signBytes(signer, input)
  return new Promise((resolve, reject) => {
    cryptoSign(schemes[signer.alg].digest, input, optionsOf(signer), (error, signature) => {
      if (error) reject(error)
      else resolve(signature)
    })
  })
}

/** Whether a signature is the key's own over exactly these bytes. */
export function isSignedBy(
  verifier: AlgorithmKey,
  input: Uint8Array,
  signature: Uint8Array,
): boolean {
  const { digest, length } = schemes[verifier.alg]
  if (length !== undefined && signature.length !== length) return false
  if (verifier.alg === 'HS256') return timingSafeEqual(mac(verifier, input), signature)
  return cryptoVerify(digest, input, optionsOf(verifier), signature)
}
