import { describe, expect, test } from 'vitest'
import { audiencesOf, checkTimes, parseClaims, textClaim, timeClaim } from './claims.ts'
import { TokenRefused } from './errors.ts'

const now = 1_800_000_000
const rules = { nowMs: now * 1000, leewaySeconds: 60 }

function codeOf(act: () => unknown): string {
  try {
    act()
    return 'accepted'
  } catch (error) {
    if (error instanceof TokenRefused) return error.code
    throw error
  }
}

describe('times', () => {
  test.each([
    ['within', { exp: now + 10, iat: now - 10, nbf: now - 10 }, 'accepted'],
    ['59 s over', { exp: now - 59 }, 'accepted'],
    ['60 s over', { exp: now - 60 }, 'accepted'],
    ['61 s over', { exp: now - 61 }, 'expired'],
    ['59 s to nbf', { exp: now + 100, nbf: now + 59 }, 'accepted'],
    ['61 s to nbf', { exp: now + 100, nbf: now + 61 }, 'not-yet-valid'],
    ['issued in 61 s', { exp: now + 100, iat: now + 61 }, 'not-yet-valid'],
    ['no end', {}, 'bad-claims'],
    ['an end in text', { exp: '9999999999' }, 'bad-claims'],
    ['an end that is no whole number', { exp: now + 0.5 }, 'bad-claims'],
    ['a negative end', { exp: -1 }, 'bad-claims'],
    ['an end without end', { exp: Number.POSITIVE_INFINITY }, 'bad-claims'],
    ['an end that is null', { exp: null }, 'bad-claims'],
  ])('%s', (_name, claims, code) => {
    expect(codeOf(() => checkTimes(claims, rules))).toBe(code)
  })

  test('a token may not live longer than the longest', () => {
    const strict = { ...rules, maxLifetimeSeconds: 100 }
    expect(codeOf(() => checkTimes({ exp: now + 90, iat: now - 10 }, strict))).toBe('accepted')
    expect(codeOf(() => checkTimes({ exp: now + 91, iat: now - 10 }, strict))).toBe(
      'lives-too-long',
    )
  })

  test('iat can be demanded', () => {
    expect(codeOf(() => checkTimes({ exp: now }, { ...rules, isIatRequired: true }))).toBe(
      'bad-claims',
    )
  })
})

describe('audiences', () => {
  test.each([
    ['a string', 'a', ['a']],
    ['a list', ['a', 'b'], ['a', 'b']],
    ['nothing', undefined, undefined],
  ])('%s', (_name, aud, audiences) => {
    expect(audiencesOf(aud === undefined ? {} : { aud })).toEqual(audiences)
  })

  test.each([
    ['an empty list', []],
    ['an empty string', ''],
    ['an object', { a: 1 }],
    ['a list with a number', ['a', 1]],
    ['null', null],
  ])('%s is refused', (_name, aud) => {
    expect(codeOf(() => audiencesOf({ aud }))).toBe('bad-claims')
  })
})

describe('names that look like registered claims are refused', () => {
  test.each(['ISS', 'Sub', '\u017Fub', 'ａｕｄ'])('%s', (name) => {
    expect(codeOf(() => parseClaims(Buffer.from(JSON.stringify({ [name]: 'x' }))))).toBe(
      'bad-claims',
    )
  })
})

test('a claim must be there, be text and not be empty', () => {
  expect(textClaim({ sub: 'me' }, 'sub')).toBe('me')
  for (const claims of [{}, { sub: '' }, { sub: 1 }])
    expect(codeOf(() => textClaim(claims, 'sub'))).toBe('bad-claims')
  expect(timeClaim({}, 'nbf')).toBeUndefined()
})
