import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { renderJwks, signCompactJws, signingKey } from '../../src/jose/index.ts'

/** What a process that signs or verifies is told; the programs of interop/verifiers take the same. */
export interface TokenOrder {
  readonly op: 'sign' | 'verify'
  readonly seconds: number
  readonly issuer: string
  readonly audience: string
  readonly alg: string
  readonly kid: string
  readonly privatePem: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly jwks: { readonly keys: readonly unknown[] }
  readonly tokens: readonly string[]
}

/** The algorithms that are measured. */
export const algorithms = ['RS256', 'ES256'] as const

const newKey: Readonly<Record<(typeof algorithms)[number], () => KeyObject>> = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
}

const tokenCount = 64

/** An order with claims as a Pod's token has them, and tokens of which no two are the same. */
export function newOrder(
  alg: (typeof algorithms)[number],
  about: Pick<TokenOrder, 'op' | 'seconds'>,
): TokenOrder {
  const pem = newKey[alg]().export({ type: 'pkcs8', format: 'pem' })
  const key = signingKey(createPrivateKey(pem))
  const [issuer, audience] = ['https://kubernetes.default.svc.cluster.local', 'vault']
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    aud: [audience],
    exp: now + 3_600,
    iat: now,
    iss: issuer,
    jti: '6b1f2d0e-8c1a-4f0e-9d55-3a6f0b7c2d11',
    'kubernetes.io': {
      namespace: 'default',
      node: { name: 'worker-1', uid: '0d7c1b52-5d6e-4a3c-8f41-91a2b3c4d5e6' },
      pod: { name: 'web-7d4b9c6f5-x2x8z', uid: '5f4e3d2c-1b0a-4998-8776-655443322110' },
      serviceaccount: { name: 'web', uid: 'a1b2c3d4-e5f6-4789-9abc-def012345678' },
    },
    nbf: now,
    sub: 'system:serviceaccount:default:web',
  }
  const tokens = Array.from({ length: tokenCount }, (_, number) =>
    signCompactJws({ kid: key.kid }, JSON.stringify({ ...claims, jti: `${number}` }), key),
  )
  const jwks = JSON.parse(renderJwks([key.publicKey]).toString()) as TokenOrder['jwks']
  return {
    ...about,
    issuer,
    audience,
    alg,
    kid: key.kid,
    privatePem: pem.toString(),
    claims,
    jwks,
    tokens,
  }
}
