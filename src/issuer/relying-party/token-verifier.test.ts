import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../testing/index.ts'
import { TokenRejected } from './errors.ts'
import type { VerifierOptions } from './options.ts'
import {
  anyIssuer,
  createServiceAccountVerifier,
  createTokenVerifier,
  type TokenVerifier,
} from './token-verifier.ts'

/** The machine's clock, ahead by as much as a test wants. */
class Ahead {
  ms = 0
  now = (): number => Date.now() + this.ms
  monotonic = (): number => performance.now() + this.ms
}

let issuer: TestIssuer
let other: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ algorithm: 'ES256', path: '/clusters/a' })
  other = await startTestIssuer({ algorithm: 'ES256', protocol: 'http' })
})
afterAll(async () => {
  await issuer.stop()
  await other.stop()
})

const codeOf = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'accepted',
    (error: { code?: string }) => error.code ?? 'thrown',
  )

test('a token is verified from the URL of its issuer, under a private CA [ISS-P1]', async () => {
  const verifier = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'vault' })
  const token = issuer.serviceAccountToken({
    namespace: 'shop',
    name: 'bot',
    audience: 'vault',
    pod: 'web',
  })
  expect(await verifier.verify(token)).toMatchObject({
    issuer: issuer.issuer,
    subject: 'system:serviceaccount:shop:bot',
    namespace: 'shop',
    serviceAccount: { name: 'bot', uid: 'uid-of-the-account' },
    bound: { kind: 'Pod', name: 'web' },
    audiences: ['vault'],
    id: expect.stringMatching(/^[\da-f-]{36}$/),
  })
  expect(issuer.requests).toEqual([
    '/clusters/a/.well-known/openid-configuration',
    '/clusters/a/openid/v1/jwks',
  ])
})

test('rotation: the next key is found by its id, a dropped one is forgotten [ISS-P1]', async () => {
  const clock = new Ahead()
  const rotating = await startTestIssuer({ algorithm: 'ES256', protocol: 'http', clock })
  const verifier = createServiceAccountVerifier({
    ...rotating.verifierOptions,
    audience: 'x',
    clock,
  })
  const tokenNow = () => rotating.serviceAccountToken({ audience: 'x', lifetimeSeconds: 86_400 })
  const old = tokenNow()
  expect(await codeOf(verifier.verify(old))).toBe('accepted')
  await rotating.rotate()
  expect(await codeOf(verifier.verify(tokenNow()))).toBe('unknown-key')
  clock.ms += 30_000
  expect(await codeOf(verifier.verify(tokenNow()))).toBe('accepted')
  expect(await codeOf(verifier.verify(old))).toBe('accepted')
  rotating.dropOldKeys()
  clock.ms += 3_600_000
  expect(await codeOf(verifier.verify(old))).toBe('unknown-key')
  expect(await codeOf(verifier.verify(tokenNow()))).toBe('accepted')
  await rotating.stop()
})

test('an issuer in trouble is not the fault of a token', async () => {
  const failing = await startTestIssuer({ algorithm: 'ES256', protocol: 'http' })
  const verifier = createServiceAccountVerifier({ ...failing.verifierOptions, audience: 'x' })
  failing.failWith(500)
  const token = failing.serviceAccountToken({ audience: 'x' })
  await expect(verifier.verify(token)).rejects.toMatchObject({
    name: 'IssuerUnavailable',
    code: 'bad-status',
  })
  await failing.stop()
})

describe('tokens of others never make us fetch anything [ISS-P2]', () => {
  test.each<[string, () => string]>([
    ['of another issuer', () => other.serviceAccountToken({ audience: 'x' })],
    ['that claim nothing', () => 'a.b.c'],
    ['that are junk', () => 'junk'],
    ['with a claim that fails before', () => 'x'.repeat(20_000)],
  ])('%s', async (_name, token) => {
    const verifier = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'x' })
    const before = issuer.requests.length + other.requests.length
    expect(await codeOf(verifier.verify(token()))).toMatch(/^(wrong-issuer|malformed|too-large)$/)
    await verifier.explain(token())
    expect(issuer.requests.length + other.requests.length).toBe(before)
  })
})

describe('whatever is shown as a token, the answer is a verdict and never a fault', () => {
  let verifier: TokenVerifier
  beforeAll(async () => {
    verifier = createServiceAccountVerifier({ ...other.verifierOptions, audience: 'x' })
    await verifier.verify(other.serviceAccountToken({ audience: 'x' }))
  })
  const isJudged = async (token: string): Promise<boolean> => {
    const error = await verifier.verify(token).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    const { accepted } = await verifier.explain(token)
    return accepted ? error === undefined : error instanceof TokenRejected
  }
  const encoded = (value: unknown): string =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

  test('any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        expect(await isJudged(text)).toBe(true)
      }),
    )
  })

  test.each([undefined, null, 5, {}])(
    '%j, which a caller without types may have',
    async (value) => {
      const token = value as unknown as string
      expect(await isJudged(token)).toBe(true)
      expect(await codeOf(verifier.verify(token))).toBe('missing')
      expect(await codeOf(anyIssuer(verifier).verify(token))).toBe('missing')
    },
  )

  test('any header and any claims of the issuer', async () => {
    const header = fc.record({
      alg: fc.constantFrom('ES256', 'none', 'HS256', 5),
      kid: fc.jsonValue(),
    })
    const parts = fc.tuple(header, fc.dictionary(fc.string(), fc.jsonValue()), fc.base64String())
    await fc.assert(
      fc.asyncProperty(parts, async ([head, claims, signature]) => {
        const token = [encoded(head), encoded({ ...claims, iss: other.issuer }), signature].join(
          '.',
        )
        expect(await isJudged(token)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  test.each([null, 5, [], {}, ''])(
    'a jti of %j: refused, of other issuers left out',
    async (jti) => {
      const token = other.serviceAccountToken({ audience: 'x', claims: { jti } })
      expect([await isJudged(token), await codeOf(verifier.verify(token))]).toEqual([
        true,
        'bad-claims',
      ])
      const any = createTokenVerifier({ ...other.verifierOptions, audience: 'x' })
      expect(await any.verify(token)).not.toHaveProperty('id')
      expect((await any.explain(token)).accepted).toBe(true)
    },
  )

  test('any claims that the issuer has signed', async () => {
    const names = fc.constantFrom('aud', 'exp', 'nbf', 'iat', 'sub', 'jti', 'kubernetes.io', 'iss')
    const own = fc.dictionary(
      fc.constantFrom('namespace', 'serviceaccount', 'pod', 'node'),
      fc.jsonValue(),
    )
    const claims = fc.dictionary(names, fc.oneof(fc.jsonValue(), own))
    await fc.assert(
      fc.asyncProperty(claims, async (changed) => {
        const token = other.serviceAccountToken({ audience: 'x', claims: changed })
        expect(await isJudged(token)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })
})

test('a token that names no key is tried with ten keys and no more', async () => {
  const many = await startTestIssuer({ algorithm: 'ES256', protocol: 'http' })
  const token = many.serviceAccountToken({ audience: 'x' })
  const [, payload, signature] = token.split('.')
  const header = Buffer.from('{"alg":"ES256"}').toString('base64url')
  const nameless = `${header}.${payload}.${signature}`
  const verdict = () =>
    codeOf(
      createServiceAccountVerifier({ ...many.verifierOptions, audience: 'x' }).verify(nameless),
    )
  for (let keys = 1; keys < 10; keys += 1) await many.rotate()
  expect(await verdict()).toBe('bad-signature')
  await many.rotate()
  expect(await verdict()).toBe('unknown-key')
  await many.stop()
})

describe('several issuers', () => {
  const both = () =>
    anyIssuer(
      ...[issuer, other].map(({ verifierOptions }) =>
        createServiceAccountVerifier({ ...verifierOptions, audience: 'x' }),
      ),
    )

  test('each has its own keys: one cannot speak for the other', async () => {
    const verifier = both()
    const claims = { iss: other.issuer }
    expect(await codeOf(verifier.verify(issuer.serviceAccountToken({ audience: 'x' })))).toBe(
      'accepted',
    )
    expect(await codeOf(verifier.verify(other.serviceAccountToken({ audience: 'x' })))).toBe(
      'accepted',
    )
    const forged = issuer.serviceAccountToken({ audience: 'x', claims })
    expect(await codeOf(verifier.verify(forged))).toBe('unknown-key')
    expect((await verifier.explain(forged)).accepted).toBe(false)
  })

  test('a stranger is refused, the same issuer twice is a mistake', async () => {
    const third = other.serviceAccountToken({
      audience: 'x',
      claims: { iss: 'https://third.example' },
    })
    expect(await codeOf(both().verify(third))).toBe('wrong-issuer')
    const one = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'x' })
    expect(() => anyIssuer(one, one)).toThrow('the same issuer')
  })
})

test('tokens of any other OIDC issuer need no claims of Kubernetes', async () => {
  const options = { ...issuer.verifierOptions, audience: 'x' }
  const token = issuer.serviceAccountToken({
    audience: 'x',
    claims: { sub: 'repo:octo/app', 'kubernetes.io': undefined, iat: undefined, jti: undefined },
  })
  expect(await createTokenVerifier(options).verify(token)).toMatchObject({
    subject: 'repo:octo/app',
  })
  expect(await codeOf(createServiceAccountVerifier(options).verify(token))).toBe('bad-claims')
})

describe('options that could never work are refused at once', () => {
  test.each<[string, Partial<VerifierOptions>]>([
    ['issuer is not an https URL', { issuer: 'http://issuer.example' }],
    ['issuer is not a valid URL', { issuer: 'issuer' }],
    ['issuer has a query', { issuer: 'https://issuer.example?a=b' }],
    ['issuer has a query or a fragment', { issuer: 'https://issuer.example#' }],
    ['issuer contains a user', { issuer: 'https://a@issuer.example' }],
    ['discoveryUrl is not an https URL', { discoveryUrl: 'http://10.0.0.1' }],
    ['jwksUri is not an https URL', { jwksUri: 'ftp://issuer.example' }],
    ['audience must be the name of your application', { audience: [] }],
    ['audience must be the name of your application', { audience: '' }],
    ['is not a range of addresses', { allowPrivateAddresses: ['10.0.0.0'] }],
    ['leewaySeconds must be a non-negative number', { leewaySeconds: Number.NaN }],
    ['leewaySeconds must be a non-negative number', { leewaySeconds: Number.POSITIVE_INFINITY }],
    ['longestLifeSeconds must be a non-negative number', { longestLifeSeconds: Number.NaN }],
    ['longestCacheMs must be a non-negative number', { longestCacheMs: -1 }],
    ['staleMs must be a non-negative number', { staleMs: Number.NaN }],
    ['issuer is missing', { issuer: '' }],
    ['algorithms must be some of RS256', { algorithms: [] }],
    ['algorithms must be some of RS256', { algorithms: 'RS256' as never }],
    ['caPem contains no certificate', { caPem: '' }],
    [
      'credential.origin must be an origin',
      { credential: { origin: 'https://issuer.example/', token: () => 'x' } },
    ],
  ])('%s', (why, wrong) => {
    const options = { issuer: 'https://issuer.example', audience: 'x', ...wrong }
    expect(() => createServiceAccountVerifier(options)).toThrow(why)
  })
})
