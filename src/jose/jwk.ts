import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { KeyRefused } from './jose-refused.ts'
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
export function publicJwk({ key, kid, alg }: VerificationKey): PublicJwk {
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
export function renderJwks(keys: readonly VerificationKey[]): Buffer {
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
  if (!isObject(value) || [...privateMembers].some((name) => Object.hasOwn(value, name)))
    return undefined
  const use = member(value, 'use')
  const kid = member(value, 'kid')
  const alg = member(value, 'alg')
  if ((use !== undefined && use !== 'sig') || (kid !== undefined && typeof kid !== 'string'))
    return undefined
  const key = importJwk(value)
  if (!key || (alg !== undefined && alg !== key.alg)) return undefined
  return kid === undefined ? key : { ...key, kid }
}

function importJwk(value: object): VerificationKey | undefined {
  try {
    return verificationKey(createPublicKey({ key: value as JsonWebKey, format: 'jwk' }))
  } catch {
    return undefined
  }
}
