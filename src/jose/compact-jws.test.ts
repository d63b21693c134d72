import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import {
  isVerifiedBy,
  parseCompactJws,
  parseDetachedJws,
  signCompactJws,
  signCompactJwsAsync,
  signDetachedJws,
} from './compact-jws.ts'
import { TokenRefused } from './errors.ts'
import { privateKeyFor, segment } from './jose.suite.ts'
import { KeySet } from './key-set.ts'
import { hmacKey, type SigningKey, signingKey } from './keys.ts'

const algorithms = ['RS256', 'ES256', 'ES384', 'ES512'] as const
const signers = Object.fromEntries(
  algorithms.map((alg) => [alg, signingKey(privateKeyFor(alg))]),
) as Record<(typeof algorithms)[number], SigningKey>
const keys = new KeySet(Object.values(signers).map(({ publicKey }) => publicKey))
const sign = (signer: SigningKey, header: object = { kid: signer.kid }): string =>
  signCompactJws({ ...header }, '{"sub":"me"}', signer)

function refusal(token: string, set = keys): string {
  try {
    set.verify(parseCompactJws(token))
    return 'accepted'
  } catch (error) {
    if (error instanceof TokenRefused) return error.code
    throw error
  }
}

test.each(algorithms)('%s: what was signed is verified, on either thread', async (alg) => {
  const signer = signers[alg]
  expect(refusal(sign(signer))).toBe('accepted')
  expect(refusal(await signCompactJwsAsync({ kid: signer.kid }, '{}', signer))).toBe('accepted')
})

test('the header has the algorithm and what was given, nothing else', () => {
  const [header = ''] = sign(signers.RS256).split('.')
  expect(Buffer.from(header, 'base64url').toString()).toBe(
    `{"alg":"RS256","kid":"${signers.RS256.kid}"}`,
  )
})

test('without a kid every key of the algorithm is tried', () => {
  expect(refusal(sign(signers.ES384, {}))).toBe('accepted')
})

describe('algorithm confusion is refused', () => {
  const body = segment({ sub: 'me' })
  const { kid } = signers.RS256
  const forged = (header: object, key: string | Buffer): string => {
    const input = `${segment(header)}.${body}`
    return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
  }
  const spki = signers.RS256.publicKey.key.export({ type: 'spki', format: 'pem' })
  const der = signers.RS256.publicKey.key.export({ type: 'spki', format: 'der' })
  const swapped = (alg: string, signer: SigningKey): string => {
    const [, payload, signature] = sign(signer).split('.')
    return `${segment({ alg, kid: signer.kid })}.${payload}.${signature}`
  }
  test.each([
    ['none without a signature', `${segment({ alg: 'none' })}.${body}.`],
    ['None', `${segment({ alg: 'None', kid })}.${body}.`],
    ['HS256 with the public PEM', forged({ alg: 'HS256', kid }, spki)],
    ['HS256 with the public DER', forged({ alg: 'HS256', kid }, der)],
    ['RS256 for a key of ES256', swapped('RS256', signers.ES256)],
    ['ES256 for a key of RS256', swapped('ES256', signers.RS256)],
    ['PS256', swapped('PS256', signers.RS256)],
    ['RS512', swapped('RS512', signers.RS256)],
    ['ES256 for a key of P-384', swapped('ES256', signers.ES384)],
  ])('%s', (_name, token) => {
    expect(refusal(token)).toBe('bad-algorithm')
  })
})

describe('keys that a token brings along or asks for are not used', () => {
  const stranger = signingKey(privateKeyFor('ES256'))
  const jwk = stranger.publicKey.key.export({ format: 'jwk' })
  test.each([
    ['an unknown kid', { kid: 'x' }, 'unknown-key'],
    ['a path as kid', { kid: '../../etc/passwd' }, 'unknown-key'],
    ['__proto__ as kid', { kid: '__proto__' }, 'unknown-key'],
    ['an embedded jwk', { kid: signers.ES256.kid, jwk }, 'bad-signature'],
    ['a jku', { kid: signers.ES256.kid, jku: 'https://evil.example/keys' }, 'bad-signature'],
  ])('%s', (_name, header, code) => {
    expect(refusal(sign(stranger, header))).toBe(code)
  })
})

describe('a header that is not as it must be is refused', () => {
  const { kid } = signers.ES256
  test.each([
    ['crit', { kid, crit: ['exp'] }],
    ['an empty crit', { kid, crit: [] }],
    ['b64', { kid, b64: false }],
    ['a kid that is a list', { kid: [kid] }],
    ['a kid that is null', { kid: null }],
    ['an empty kid', { kid: '' }],
    ['a very long kid', { kid: 'k'.repeat(1025) }],
    ['a typ that is a number', { kid, typ: 1 }],
  ])('%s', (_name, header) => {
    expect(refusal(sign(signers.ES256, header))).toBe('bad-header')
  })
})

describe('a signature that is not exactly right is refused', () => {
  const token = sign(signers.ES256)
  const [header = '', payload = '', signature = ''] = token.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const withSignature = (value: Buffer): string =>
    `${header}.${payload}.${value.toString('base64url')}`
  const der = Buffer.concat([Buffer.from('3044', 'hex'), bytes])
  test.each([
    ['all zero', withSignature(Buffer.alloc(64))],
    ['cut short', withSignature(bytes.subarray(0, 63))],
    ['made longer', withSignature(Buffer.concat([bytes, Buffer.alloc(1)]))],
    ['in DER', withSignature(der)],
    ['empty', `${header}.${payload}.`],
    ['over another payload', `${header}.${segment({ sub: 'you' })}.${signature}`],
  ])('%s', (_name, forged) => {
    expect(refusal(forged)).toBe('bad-signature')
  })
})

describe('a token that is not three canonical parts is refused', () => {
  const token = sign(signers.ES256)
  test.each([
    ['two parts', token.split('.').slice(0, 2).join('.'), 'malformed'],
    ['four parts', `${token}.`, 'malformed'],
    ['padding', `${token}=`, 'malformed'],
    ['a space before', ` ${token}`, 'malformed'],
    ['a line end after', `${token}\n`, 'malformed'],
    ['a JSON serialisation', '{"payload":"x"}', 'malformed'],
    ['sixteen kilobytes and more', `${token}${'A'.repeat(16 * 1024)}`, 'too-large'],
    ['a header that is a list', `${segment([])}.e30.`, 'bad-header'],
    ['a doubled member', `${segment('{"alg":"ES256","alg":"none"}')}.e30.AA`, 'bad-header'],
  ])('%s', (_name, forged, code) => {
    expect(refusal(forged)).toBe(code)
  })

  test('no text whatever is accepted or breaks the parser', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(token.length), (text, at) => {
        const changed = token.slice(0, at) + text + token.slice(at + 1)
        expect(refusal(changed) === 'accepted').toBe(changed === token)
      }),
    )
  })
})

describe('a detached signature', () => {
  const key = hmacKey(new Secret('f395accd246ae52d'), '07401b')

  test('leaves the payload out and is verified over it', () => {
    const jws = signDetachedJws({ kid: '07401b' }, 'the payload', key)
    expect(jws.split('.')[1]).toBe('')
    expect(isVerifiedBy(parseDetachedJws(jws, Buffer.from('the payload')), key)).toBe(true)
    expect(isVerifiedBy(parseDetachedJws(jws, Buffer.from('the payloaD')), key)).toBe(false)
  })

  test.each(['', 'a.b.c', 'a..b.c', 'a.b'])('%j is not one', (jws) => {
    expect(() => parseDetachedJws(jws, Buffer.from(''))).toThrow(TokenRefused)
  })
})

test('two keys under one id are refused, the same key twice counts once', () => {
  const [first, second] = [signers.ES256.publicKey, signers.ES384.publicKey]
  expect(new KeySet([first, first]).keys).toHaveLength(1)
  expect(() => new KeySet([first, { ...second, kid: first.kid }])).toThrow(/same key id/)
})

test('algorithms are listed once and sorted', () => {
  expect(keys.algorithms).toEqual(['ES256', 'ES384', 'ES512', 'RS256'])
})
