import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { type KnownAlgorithm, rsaAlgorithms } from './algorithms.ts'
import { KeyRefused } from './errors.ts'
import { type VerificationKey, verificationKey } from './keys.ts'
import { isObject, member } from './strict-json.ts'

/** A public key in a JWK set: these members in this order, and no others. */
export interface PublicJwk {
  readonly use: 'sig'
  readonly kty: string
  readonly kid: string
  readonly crv?: string
  readonly alg: string
  readonly x?: string
  readonly y?: string
  readonly n?: string
  readonly e?: string
}

/** The JWK of a public key, built member by member so that nothing private can slip in. */
export function publicJwk({ key, kid, alg }: VerificationKey<KnownAlgorithm>): PublicJwk {
  if (key.type !== 'public') throw new KeyRefused('only a public key can be published')
  const { kty = '', crv, x, y, n, e } = key.export({ format: 'jwk' })
  return {
    use: 'sig',
    kty,
    kid,
    ...(crv !== undefined && { crv }),
    alg,
    ...(x !== undefined && { x }),
    ...(y !== undefined && { y }),
    ...(n !== undefined && { n }),
    ...(e !== undefined && { e }),
  }
}

/** The bytes of a JWK set; refuses to make one that holds anything private. */
export function renderJwks(keys: readonly VerificationKey<KnownAlgorithm>[]): Buffer {
  const bytes = Buffer.from(JSON.stringify({ keys: keys.map(publicJwk) }))
  refusePrivateMembers(bytes)
  return bytes
}

const privateMembers = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

/** Throws if a document that is about to be published has a member of a private key, or a PEM block, anywhere. */
export function refusePrivateMembers(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString('utf8')
  if (text.includes('-----BEGIN'))
    throw new KeyRefused('a PEM block was about to be published in a document of public keys')
  JSON.parse(text, (name: string, value: unknown) => {
    if (privateMembers.has(name))
      throw new KeyRefused(`the private member ${name} was about to be published`)
    return value
  })
}

/** Reads a JWK of somebody else as a verification key; undefined if it is not for verifying signatures of a kind we know. */
export function parseJwk(value: unknown): VerificationKey | undefined {
  const { key, alg } = readJwk(value) ?? {}
  return alg === undefined || alg === key?.alg ? key : undefined
}

/**
 * Reads a JWK of a provider, once for each algorithm that it may verify by: the one that it names, or else those
 * of its kind that are accepted. An algorithm of ours that it could have counts anyway, so that the key is known.
 */
export function parseProviderJwk(
  value: unknown,
  accepted: readonly KnownAlgorithm[],
): VerificationKey<KnownAlgorithm>[] {
  const { key, alg } = readJwk(value) ?? {}
  if (!key) return []
  const ways = key.alg === 'RS256' ? rsaAlgorithms : [key.alg]
  return ways
    .filter((way) => way === key.alg || accepted.includes(way))
    .filter((way) => alg === undefined || alg === way)
    .map((way) => ({ ...key, alg: way }))
}

/** The key under the id that it was given, and the algorithm that it names. */
function readJwk(
  value: unknown,
): { readonly key: VerificationKey; readonly alg: unknown } | undefined {
  if (!isObject(value) || [...privateMembers].some((name) => Object.hasOwn(value, name)))
    return undefined
  const use = member(value, 'use')
  const kid = member(value, 'kid')
  const alg = member(value, 'alg')
  if ((use !== undefined && use !== 'sig') || (kid !== undefined && typeof kid !== 'string'))
    return undefined
  const key = importJwk(value)
  return key && { key: kid === undefined ? key : { ...key, kid }, alg }
}

function importJwk(value: object): VerificationKey | undefined {
  try {
    return verificationKey(createPublicKey({ key: value as JsonWebKey, format: 'jwk' }))
  } catch {
    return undefined
  }
}
