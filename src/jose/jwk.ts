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

/** The JWK of a public key, built member by member so that it cannot have private ones. */
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

/** The bytes of a JWK set; throws KeyRefused if it would have a private member. */
export function renderJwks(keys: readonly VerificationKey<KnownAlgorithm>[]): Buffer {
  const bytes = Buffer.from(JSON.stringify({ keys: keys.map(publicJwk) }))
  refusePrivateMembers(bytes)
  return bytes
}

const privateMembers = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

/** Throws KeyRefused if a document to be published has a member of a private key, or a PEM block, at any depth. */
export function refusePrivateMembers(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString('utf8')
  if (text.includes('-----BEGIN'))
    throw new KeyRefused('refusing to publish a PEM block in a JWK set')
  JSON.parse(text, (name: string, value: unknown) => {
    if (privateMembers.has(name))
      throw new KeyRefused(`refusing to publish the private member ${name} in a JWK set`)
    return value
  })
}

/** Parses a JWK as a verification key; undefined if it is not for verifying signatures with a supported algorithm. */
export function parseJwk(value: unknown): VerificationKey | undefined {
  const { key, alg } = readJwk(value) ?? {}
  return alg === undefined || alg === key?.alg ? key : undefined
}

/**
 * Parses a JWK of a provider, once for each algorithm that it may be used with: its `alg`, or else the accepted ones
 * for its key type. The default algorithm of the type is always included, so that the key id is known.
 */
export function parseProviderJwk(
  value: unknown,
  accepted: readonly KnownAlgorithm[],
): VerificationKey<KnownAlgorithm>[] {
  const { key, alg } = readJwk(value) ?? {}
  if (!key) return []
  const candidates = key.alg === 'RS256' ? rsaAlgorithms : [key.alg]
  return candidates
    .filter((each) => each === key.alg || accepted.includes(each))
    .filter((each) => alg === undefined || alg === each)
    .map((each) => ({ ...key, alg: each }))
}

/** The key with the `kid` of the JWK, and the `alg` of the JWK. */
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
