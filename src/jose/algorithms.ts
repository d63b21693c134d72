import {
  constants,
  createHmac,
  sign as cryptoSign,
  verify as cryptoVerify,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'

/** The algorithms that we sign with; each key has exactly one. */
export type Algorithm = 'RS256' | 'ES256' | 'ES384' | 'ES512' | 'HS256'

/** The algorithms that an RSA key of another issuer may be used with. */
export const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const

/** The algorithms that we verify: ours and those of other issuers. */
export type KnownAlgorithm = Algorithm | (typeof rsaAlgorithms)[number]

interface Scheme {
  readonly digest: string
  readonly rsa?: typeof pkcs1 | typeof pss
  /** Length of a signature in bytes, if the algorithm fixes it. */
  readonly length?: number
}

const pkcs1 = { padding: constants.RSA_PKCS1_PADDING }
// RFC 7518 §3.5: the salt has the length of the digest.
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

/** A key and the only algorithm that it may be used with. */
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

/** Signs synchronously. */
export function signBytes(signer: AlgorithmKey, input: Uint8Array): Buffer {
  if (signer.alg === 'HS256') return mac(signer, input)
  return cryptoSign(schemes[signer.alg].digest, input, optionsOf(signer))
}

/** Faster than a round trip to the thread pool. */
const fastAlgorithms: readonly KnownAlgorithm[] = ['HS256', 'ES256']

/** Signs on the thread pool if the algorithm is slow, as RSA is. */
export async function signBytesAsync(signer: AlgorithmKey, input: Uint8Array): Promise<Buffer> {
  if (fastAlgorithms.includes(signer.alg)) return signBytes(signer, input)
  return new Promise((resolve, reject) => {
    cryptoSign(schemes[signer.alg].digest, input, optionsOf(signer), (error, signature) => {
      if (error) reject(error)
      else resolve(signature)
    })
  })
}

/** Whether the key made this signature over exactly these bytes. */
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
