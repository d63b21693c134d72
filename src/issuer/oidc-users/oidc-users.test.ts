import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError, silentLogger, systemClock } from '../../core/index.ts'
import { TokenRefused } from '../../jose/index.ts'
import { startTestIssuer, type TestIssuer } from '../../testing/index.ts'
import { type ClaimRules, type OidcUsersOptions, oidcUsers, userOfClaims } from './oidc-users.ts'

const { signal } = new AbortController()
const issuer = 'https://provider.example'
const rules: ClaimRules = { issuer, usernameClaim: 'sub', requiredClaims: new Map() }

describe('claims become a user as in Kubernetes [ISS-P8]', () => {
  const claims = { sub: 'jane', email: 'jane@example.com', groups: ['a', 'b'] }
  test.each<[string, Partial<ClaimRules>, object]>([
    ['by default', {}, { username: `${issuer}#jane`, groups: [] }],
    ['with an empty prefix', { usernamePrefix: '' }, { username: `${issuer}#jane` }],
    ['without a prefix', { usernamePrefix: '-' }, { username: 'jane' }],
    ['with a prefix', { usernamePrefix: 'corp:' }, { username: 'corp:jane' }],
    ['by email', { usernameClaim: 'email' }, { username: 'jane@example.com' }],
    [
      'by email with a prefix',
      { usernameClaim: 'email', usernamePrefix: 'x-' },
      { username: 'x-jane@example.com' },
    ],
    ['with groups', { groupsClaim: 'groups' }, { groups: ['a', 'b'] }],
    [
      'with groups and a prefix',
      { groupsClaim: 'groups', groupsPrefix: 'g:' },
      { groups: ['g:a', 'g:b'] },
    ],
    ['with one group', { groupsClaim: 'sub' }, { groups: ['jane'] }],
    ['with groups that are not there', { groupsClaim: 'none' }, { groups: [] }],
    ['with a claim of every object', { groupsClaim: 'constructor' }, { groups: [] }],
    ['with what is required', { requiredClaims: new Map([['sub', 'jane']]) }, { groups: [] }],
  ])('%s', (_name, change, expected) => {
    expect(userOfClaims(claims, { ...rules, ...change })).toMatchObject(expected)
  })

  test.each<[string, Partial<ClaimRules>, object]>([
    ['no name', {}, { sub: undefined }],
    ['an empty name', {}, { sub: '' }],
    ['a name that is no text', {}, { sub: ['jane'] }],
    ['a name of every object', { usernameClaim: 'toString' }, {}],
    ['an address that is not verified', { usernameClaim: 'email' }, { email_verified: false }],
    ['an address verified in words', { usernameClaim: 'email' }, { email_verified: 'true' }],
    ['groups that are no text', { groupsClaim: 'groups' }, { groups: ['a', 1] }],
    ['groups that are an object', { groupsClaim: 'groups' }, { groups: { a: 1 } }],
    ['another value than required', { requiredClaims: new Map([['sub', 'joe']]) }, {}],
    ['nothing of what is required', { requiredClaims: new Map([['x', '']]) }, {}],
    ['a number where text is required', { requiredClaims: new Map([['n', '1']]) }, { n: 1 }],
  ])('%s is refused', (_name, change, more) => {
    expect(() => userOfClaims({ ...claims, ...more }, { ...rules, ...change })).toThrow(
      TokenRefused,
    )
  })
})

describe('users of a provider [ISS-P8]', () => {
  let provider: TestIssuer
  beforeAll(async () => {
    provider = await startTestIssuer()
  })
  afterAll(() => provider.stop())

  const users = (change: Partial<OidcUsersOptions> = {}) =>
    oidcUsers({
      ...rules,
      issuer: provider.issuer,
      clientId: 'cluster',
      algorithms: ['RS256'],
      caPem: provider.caPem,
      clock: systemClock,
      log: silentLogger,
      ...change,
    })
  const now = () => Math.floor(Date.now() / 1000)
  const tokenOf = (claims: object = {}): string =>
    provider.sign({ iss: provider.issuer, aud: 'cluster', sub: 'jane', exp: now() + 60, ...claims })
  const outcome = async (token: string, change = {}): Promise<unknown> => {
    try {
      return await users(change).authenticateToken(token, signal)
    } catch (error) {
      if (error instanceof ApiError) return `${error.reason}: ${error.detail}`
      throw error
    }
  }

  test('a good token is its user, until it ends, and can be revoked by its id', async () => {
    const exp = now() + 60
    expect(await outcome(tokenOf({ exp, jti: 'x' }))).toEqual({
      method: 'oidc',
      user: {
        username: `${provider.issuer}#jane`,
        groups: [],
        extra: { 'authentication.kubernetes.io/credential-id': ['JTI=x'] },
      },
      expiresAt: exp * 1000,
      credential: { type: 'token', id: 'x' },
    })
  })

  test.each<[string, object, string]>([
    ['for another client', { aud: 'other' }, 'oidc: audience mismatch: the token has "other"'],
    ['that has just ended', { exp: now() - 2 }, 'oidc: the token has expired'],
    ['that never ends', { exp: undefined }, 'oidc: the token has no expiry'],
    ['without a subject', { sub: undefined }, 'oidc: the claim sub is missing'],
  ])('a token %s is a 401', async (_name, claims, why) => {
    expect(await outcome(tokenOf(claims))).toContain(`Unauthorized: ${why}`)
  })

  test('another algorithm than allowed is a 401', async () => {
    expect(await outcome(tokenOf(), { algorithms: ['ES256'] })).toContain('algorithm')
  })

  test.each(['RS384', 'PS256', 'ES384'] as const)('%s only where it is allowed', async (alg) => {
    const strange = await startTestIssuer({ algorithm: alg })
    const { issuer: name, caPem } = strange
    const token = strange.sign({ iss: name, aud: 'cluster', sub: 'jane', exp: now() + 60 })
    expect(await outcome(token, { issuer: name, caPem })).toContain('algorithm')
    const allowed = { issuer: name, caPem, algorithms: [alg] }
    expect(await outcome(token, allowed)).toMatchObject({ user: { username: `${name}#jane` } })
    await strange.stop()
  })

  test('a token that is shown again is the same user, without another look at it', async () => {
    const known = users()
    const token = tokenOf()
    const first = await known.authenticateToken(token, signal)
    expect(await known.authenticateToken(token, signal)).toBe(first)
  })

  test('tokens of others are left to others', async () => {
    expect(await outcome(tokenOf({ iss: 'https://other.example' }))).toBeUndefined()
    expect(await outcome('opaque')).toBeUndefined()
  })

  test('a provider that is down is a 401, and works once it is up', async () => {
    const late = await startTestIssuer({ algorithm: 'ES256' })
    let ms = Date.now()
    const clock = { now: () => ms, monotonic: () => ms }
    const waiting = oidcUsers({
      ...rules,
      issuer: late.issuer,
      clientId: 'cluster',
      algorithms: ['ES256'],
      caPem: late.caPem,
      clock,
      log: silentLogger,
    })
    late.failWith(503)
    const token = late.sign({ iss: late.issuer, aud: 'cluster', sub: 'jane', exp: now() + 600 })
    await expect(waiting.authenticateToken(token, signal)).rejects.toMatchObject({
      reason: 'Unauthorized',
      detail: expect.stringContaining('responded with status 503'),
    })
    late.recover()
    ms += 5_000
    expect(await waiting.authenticateToken(token, signal)).toMatchObject({ method: 'oidc' })
    await late.stop()
  })
})
