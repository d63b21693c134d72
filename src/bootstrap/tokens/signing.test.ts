import { describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { hmacKey, parseCompactJws, signCompactJws, TokenRefused } from '../../jose/index.ts'
import { parseBootstrapToken } from './bootstrap-token.ts'
import {
  isDiscoveryJwt,
  mintDiscoveryJwt,
  signWithToken,
  verifyDiscoveryJwt,
  verifySignature,
} from './signature.ts'

const token = parseBootstrapToken('ae23dc.faddc87f5a5ab458')
const key = hmacKey(token.secret, token.id)

function codeOf(act: () => unknown): string {
  try {
    act()
    return 'accepted'
  } catch (error) {
    if (error instanceof TokenRefused) return error.code
    throw error
  }
}

describe('signatures are the ones that kubeadm computes [DISC-S8, DISC-R40]', () => {
  const joshua = (secret: string) => ({ id: 'joshua', secret: new Secret(secret) })
  const text = 'Hello from the other side. I must have called a thousand times.'
  const head = 'eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9'
  test.each([
    [text, 'my voice is my passcode', 'VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8'],
    ['', 'my voice is my passcode', '7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk'],
  ])('%j', (content, secret, signature) => {
    expect(signWithToken(content, joshua(secret))).toBe(`${head}..${signature}`)
  })

  test("and the seed's own, with the ASCII bytes of the secret as key [DISC-R43, DISC-T1]", () => {
    const body = '{"kind":"ConfigMap","apiVersion":"v1"}'
    const jws = signWithToken(body, token)
    expect(jws).toBe(
      'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFlMjNkYyJ9..mzm7fAiFkqktwnZZNrEHdo9iZkv7_aleKWHrYx-WBbg',
    )
    expect(codeOf(() => verifySignature(jws, Buffer.from(body), token))).toBe('accepted')
  })
})

describe('a signature is refused [DISC-R29, DISC-R43]', () => {
  const body = Buffer.from('{"kind":"ConfigMap","apiVersion":"v1"}')
  const jws = signWithToken(body, token)
  const other = parseBootstrapToken('ffffff.faddc87f5a5ab458')
  const hexKey =
    'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFlMjNkYyJ9..TnRrXKCK7HMXzkV9AJca4DdOq1YokLfvulKNASLz3RI'
  const reflected =
    'eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6ImFlMjNkYyJ9..Hr2dpfWf0spgIANV6lZo_UTXScemCjsYYmxvkcAdmEE'
  const claims = Buffer.from('{"sub":"ae23dc","iat":1500000000,"exp":1500000120}')
  test.each([
    ['over changed bytes', jws, Buffer.from(`${body.toString()} `), 'bad-signature'],
    ['of another token', signWithToken(body, other), body, 'unknown-key'],
    ['with the secret read as hexadecimal', hexKey, body, 'bad-signature'],
    ['that is the one of a request, sent back', reflected, claims, 'bad-header'],
    ['that is empty', '', body, 'malformed'],
  ])('%s', (_name, signature, bytes, code) => {
    expect(codeOf(() => verifySignature(signature, bytes, token))).toBe(code)
  })
})

describe('a discovery request', () => {
  const now = 1_500_000_000
  const rules = { nowMs: now * 1000, clusterId: 'cluster' }
  const judge = (text: string): string =>
    codeOf(() => verifyDiscoveryJwt(parseCompactJws(text), token, rules))
  const header = { typ: 'JWT', alg: 'HS256', kid: token.id }
  const signed = (claims: object): string => signCompactJws(header, JSON.stringify(claims), key)

  test('is signed as the seed has it [DISC-R32, DISC-T1]', () => {
    const text = signed({ sub: 'ae23dc', iat: 1_500_000_000, exp: 1_500_000_120 })
    expect(text.split('.')[2]).toBe('Hr2dpfWf0spgIANV6lZo_UTXScemCjsYYmxvkcAdmEE')
    expect(judge(text)).toBe('accepted')
  })

  test.each([
    [-61_000, 'expired'],
    [-59_000, 'accepted'],
    [0, 'accepted'],
    [60_000, 'accepted'],
    [61_000, 'lives-too-long'],
  ])(
    'of our own client with a clock that is off by %i ms: %s [DISC-R34, DISC-T2]',
    (offsetMs, verdict) => {
      expect(judge(mintDiscoveryJwt(token, now * 1000 + offsetMs, 'cluster'))).toBe(verdict)
    },
  )

  test('is accepted as often as it comes: nothing is kept [DISC-R36]', () => {
    const text = mintDiscoveryJwt(token, now * 1000)
    expect([judge(text), judge(text)]).toEqual(['accepted', 'accepted'])
  })

  test.each(['1e400', '-0.5', 'null', 'true', '"1500000060"', '[1500000060]', '{}'])(
    'with exp %s is refused [DISC-R33, DISC-T2]',
    (exp) => {
      const text = signCompactJws(header, `{"sub":"ae23dc","exp":${exp}}`, key)
      expect(judge(text)).toMatch(/^bad-claims|malformed$/)
    },
  )

  test.each([
    ['exp in 120 s', { sub: 'ae23dc', exp: now + 120 }, 'accepted'],
    ['exp in 121 s', { sub: 'ae23dc', exp: now + 121 }, 'lives-too-long'],
    ['exp now', { sub: 'ae23dc', exp: now }, 'expired'],
    ['exp half a second ahead', { sub: 'ae23dc', exp: now + 0.5 }, 'accepted'],
    ['exp in text', { sub: 'ae23dc', exp: String(now + 60) }, 'bad-claims'],
    ['exp negative', { sub: 'ae23dc', exp: -1 }, 'bad-claims'],
    ['no exp', { sub: 'ae23dc' }, 'bad-claims'],
    ['no sub', { exp: now + 60 }, 'bad-claims'],
    ['another sub', { sub: 'ffffff', exp: now + 60 }, 'bad-claims'],
    ['iat 5 s ahead', { sub: 'ae23dc', exp: now + 60, iat: now + 5 }, 'accepted'],
    ['iat 6 s ahead', { sub: 'ae23dc', exp: now + 60, iat: now + 6 }, 'not-yet-valid'],
    ['nbf 5 s ahead', { sub: 'ae23dc', exp: now + 60, nbf: now + 5 }, 'accepted'],
    ['nbf 6 s ahead', { sub: 'ae23dc', exp: now + 60, nbf: now + 6 }, 'not-yet-valid'],
    ['a life of 121 s', { sub: 'ae23dc', exp: now + 60, iat: now - 61 }, 'lives-too-long'],
    ['our aud', { sub: 'ae23dc', exp: now + 60, aud: ['x', 'cluster'] }, 'accepted'],
    ['another aud', { sub: 'ae23dc', exp: now + 60, aud: 'x' }, 'bad-claims'],
  ])('with %s [DISC-R32, DISC-R33, DISC-R35, DISC-T2]', (_name, claims, verdict) => {
    expect(judge(signed(claims))).toBe(verdict)
  })

  test('with an aud is refused by a server that does not know who it is [DISC-R35]', () => {
    const text = signed({ sub: 'ae23dc', exp: now + 60, aud: 'cluster' })
    const verdict = codeOf(() =>
      verifyDiscoveryJwt(parseCompactJws(text), token, { ...rules, clusterId: undefined }),
    )
    expect(verdict).toBe('bad-claims')
  })

  test.each([
    ['typ absent', { alg: 'HS256', kid: 'ae23dc' }],
    ['typ in small letters', { typ: 'jwt', alg: 'HS256', kid: 'ae23dc' }],
    ['kid absent', { typ: 'JWT', alg: 'HS256' }],
    ['a kid that is no token id', { typ: 'JWT', alg: 'HS256', kid: 'ae23dc7' }],
    ['another algorithm', { typ: 'JWT', alg: 'HS384', kid: 'ae23dc' }],
  ])('is not one with %s [DISC-R31, DISC-T2]', (_name, fields) => {
    const encoded = Buffer.from(JSON.stringify(fields)).toString('base64url')
    const [, payload, signature] = signed({ sub: 'ae23dc', exp: now + 60 }).split('.')
    expect(isDiscoveryJwt(parseCompactJws(`${encoded}.${payload}.${signature}`))).toBe(false)
  })
})
