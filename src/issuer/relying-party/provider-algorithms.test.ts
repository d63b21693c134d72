import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  type KnownAlgorithm,
  publicJwk,
  signCompactJws,
  verificationKey,
} from '../../jose/index.ts'
import type { SigningAlgorithm } from './options.ts'
import { createTokenVerifier } from './token-verifier.ts'

const issuer = 'https://login.example'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const curve = (namedCurve: string): KeyObject =>
  generateKeyPairSync('ec', { namedCurve }).privateKey
const keys: Readonly<Record<string, KeyObject>> = {
  ES256: curve('P-256'),
  ES384: curve('P-384'),
  ES512: curve('P-521'),
}
const keyFor = (alg: string): KeyObject => keys[alg] ?? rsa
const algorithms = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'ES512'] as const),
]

/** A JWK that names this algorithm, or none. */
const jwkOf = (key: KeyObject, alg?: string): object => {
  const { alg: _, ...bare } = publicJwk(verificationKey(key))
  return { ...bare, ...(alg !== undefined && { alg }) }
}
const kidOf = (key: KeyObject): string => verificationKey(key).kid

const payload = (): string => {
  const now = Math.floor(Date.now() / 1000)
  return JSON.stringify({ iss: issuer, aud: 'me', sub: 'jane', iat: now, exp: now + 60 })
}
const tokenBy = (alg: KnownAlgorithm, key = keyFor(alg), kid = kidOf(key)): string =>
  signCompactJws({ kid }, payload(), { alg, key })

/** Accepted, or the code of the refusal. */
async function outcome(
  token: string,
  jwks: readonly object[],
  allowed?: readonly SigningAlgorithm[],
): Promise<string> {
  const documents: Readonly<Record<string, object>> = {
    '/.well-known/openid-configuration': { issuer, jwks_uri: `${issuer}/keys` },
    '/keys': { keys: jwks },
  }
  const verifier = createTokenVerifier({
    issuer,
    audience: 'me',
    algorithms: allowed,
    fetch: ({ pathname }) =>
      Promise.resolve({ body: Buffer.from(JSON.stringify(documents[pathname])) }),
  })
  return verifier.verify(token).then(
    () => 'accepted',
    (error: { code?: string }) => error.code ?? 'thrown',
  )
}

describe('algorithms of providers [ISS-P8]', () => {
  test.each(algorithms)('%s is accepted where it is allowed', async (alg) => {
    const key = keyFor(alg)
    for (const jwk of [jwkOf(key, alg), jwkOf(key)])
      expect(await outcome(tokenBy(alg), [jwk], [alg])).toBe('accepted')
  })

  test.each(algorithms)('%s is refused where only others are allowed', async (alg) => {
    const others = algorithms.filter((other) => other !== alg)
    for (const jwk of [jwkOf(keyFor(alg), alg), jwkOf(keyFor(alg))])
      expect(await outcome(tokenBy(alg), [jwk], others)).toBe('bad-algorithm')
  })

  test.each([
    ['RS256', 'accepted'],
    ['ES256', 'accepted'],
    ['ES384', 'accepted'],
    ['ES512', 'accepted'],
    ['RS384', 'bad-algorithm'],
    ['RS512', 'bad-algorithm'],
    ['PS256', 'bad-algorithm'],
    ['PS384', 'bad-algorithm'],
    ['PS512', 'bad-algorithm'],
  ] as const)('where nothing is said, %s is %s', async (alg, expected) => {
    expect(await outcome(tokenBy(alg), [jwkOf(keyFor(alg))])).toBe(expected)
  })
})

describe('confusion of algorithms, though all are allowed [ISS-P8]', () => {
  const forged = (header: object, make: (input: Buffer) => Buffer): string => {
    const input = [JSON.stringify(header), payload()]
      .map((text) => Buffer.from(text).toString('base64url'))
      .join('.')
    return `${input}.${make(Buffer.from(input)).toString('base64url')}`
  }
  const kid = kidOf(rsa)
  const pem = rsa.export({ type: 'pkcs8', format: 'pem' }).toString()
  const publicPem = verificationKey(rsa).key.export({ type: 'spki', format: 'pem' })
  const pss = (saltLength: number) => (input: Buffer) =>
    sign('sha256', input, { key: rsa, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength })
  const hmac = (secret: string | Buffer) => (input: Buffer) =>
    createHmac('sha256', secret).update(input).digest()
  const named = (alg: string, jwk = jwkOf(rsa)) => ({ alg, jwk })

  test.each<[string, string, object, string]>([
    ['PS256 by a key that is for RS256', tokenBy('PS256'), jwkOf(rsa, 'RS256'), 'bad-algorithm'],
    ['RS256 by a key that is for PS256', tokenBy('RS256'), jwkOf(rsa, 'PS256'), 'bad-algorithm'],
    ['RS512 by a key that is for RS256', tokenBy('RS512'), jwkOf(rsa, 'RS256'), 'bad-algorithm'],
    [
      'a signature of RS256 that is called PS256',
      forged({ alg: 'PS256', kid }, (input) => sign('sha256', input, pem)),
      jwkOf(rsa),
      'bad-signature',
    ],
    [
      'a signature of RS256 that is called RS512',
      forged({ alg: 'RS512', kid }, (input) => sign('sha256', input, pem)),
      jwkOf(rsa),
      'bad-signature',
    ],
    [
      'PS256 with a salt of no bytes',
      forged({ alg: 'PS256', kid }, pss(0)),
      jwkOf(rsa),
      'bad-signature',
    ],
    [
      'PS256 with a salt of 20 bytes',
      forged({ alg: 'PS256', kid }, pss(20)),
      jwkOf(rsa),
      'bad-signature',
    ],
    [
      'HS256 with the public key for a secret',
      forged({ alg: 'HS256', kid }, hmac(publicPem)),
      jwkOf(rsa),
      'bad-algorithm',
    ],
    [
      'HS256 with the key set for a secret',
      forged({ alg: 'HS256', kid }, hmac(JSON.stringify(jwkOf(rsa)))),
      jwkOf(rsa),
      'bad-algorithm',
    ],
    [
      'no algorithm',
      forged({ alg: 'none', kid }, () => Buffer.alloc(0)),
      jwkOf(rsa),
      'bad-algorithm',
    ],
    [
      'another spelling',
      forged({ alg: 'rs256', kid }, (input) => sign('sha256', input, pem)),
      jwkOf(rsa),
      'bad-algorithm',
    ],
    [
      'ES256 under the id of an RSA key',
      tokenBy('ES256', keyFor('ES256'), kid),
      jwkOf(rsa),
      'bad-algorithm',
    ],
    [
      'RS256 under the id of a curve',
      tokenBy('RS256', rsa, kidOf(keyFor('ES256'))),
      jwkOf(keyFor('ES256')),
      'bad-algorithm',
    ],
    [
      'a key in the header',
      forged({ ...named('RS256'), kid: 'mine' }, (input) => sign('sha256', input, pem)),
      jwkOf(keyFor('ES256')),
      'unknown-key',
    ],
  ])('%s is refused', async (_name, token, jwk, code) => {
    expect(await outcome(token, [jwk], algorithms)).toBe(code)
  })

  test('a key set in which one id is for two algorithms of one key is good for both', async () => {
    const jwks = [jwkOf(rsa, 'RS256'), jwkOf(rsa, 'PS256')]
    for (const alg of ['RS256', 'PS256'] as const)
      expect(await outcome(tokenBy(alg), jwks, algorithms)).toBe('accepted')
    expect(await outcome(tokenBy('RS384'), jwks, algorithms)).toBe('bad-algorithm')
  })
})
