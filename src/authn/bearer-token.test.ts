import { describe, expect, test } from 'vitest'
import { type Authentication, unauthorized } from '../core/index.ts'
import { requestWith } from './authentication-request.suite.ts'
import {
  bearerToken,
  bearerTokens,
  forApiAudiences,
  type TokenAuthenticator,
} from './bearer-token.ts'

const signal = new AbortController().signal
const jane: Authentication = { user: { username: 'jane', groups: [] }, method: 'test' }

const authorization = (...values: string[]) =>
  requestWith(values.map((value) => ['Authorization', value] as const))

const outcome = (read: () => string | undefined) => {
  try {
    return read() ?? 'none'
  } catch (error) {
    return error instanceof Error ? error.message : 'thrown'
  }
}

describe('the bearer token of a request', () => {
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER a.b-c_d~e+f/g=', 'a.b-c_d~e+f/g='],
    ['  Bearer abc  ', 'Unauthorized'], // HTTP/1.1 has removed white space already
    ['Bearer abc\u00a0', 'Unauthorized'],
    ['Bearer', 'Unauthorized'],
    ['Bearer ', 'Unauthorized'],
    ['Bearer  abc', 'Unauthorized'],
    ['Bearer\tabc', 'Unauthorized'],
    ['Bearer a b', 'Unauthorized'],
    ['Bearer abc,Bearer def', 'Unauthorized'],
    ['Bearer caf\u00e9', 'Unauthorized'],
    ['Basic YTpi', 'Unauthorized'],
    ['Bearerabc', 'Unauthorized'],
    ['', 'Unauthorized'],
  ])('in %j is %s [GND-R70]', (value, expected) => {
    expect(outcome(() => bearerToken(authorization(value)))).toBe(expected)
  })

  test('is not there without a header', () => {
    expect(bearerToken(requestWith([]))).toBeUndefined()
  })

  test('must be the only one, though Node shows only the first [GND-R70]', () => {
    const request = authorization('Bearer good', 'Bearer other')
    expect(request.headers.authorization).toBe('Bearer good')
    expect(outcome(() => bearerToken(request))).toBe('Unauthorized')
  })
})

describe('a token as WebSocket protocol', () => {
  const encoded = (token: string | Buffer) =>
    `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  const upgrade = [
    ['Connection', 'keep-alive, Upgrade'],
    ['Upgrade', 'WebSocket'],
  ] as const
  const offering = (...protocols: string[]) =>
    requestWith([
      ...upgrade,
      ...protocols.map((value) => ['Sec-WebSocket-Protocol', value] as const),
    ])

  test.each([
    ['beside another', [`${encoded('abc')}, v4.channel.k8s.io`], 'abc'],
    ['in a header of its own', ['v4.channel.k8s.io', encoded('abc')], 'abc'],
    ['alone', [encoded('abc')], 'Unauthorized'],
    ['twice', [`${encoded('a')},${encoded('a')},x`], 'Unauthorized'],
    ['empty', ['base64url.bearer.authorization.k8s.io., x'], 'Unauthorized'],
    ['with padding', [`${encoded('a')}=, x`], 'Unauthorized'],
    ['in the other alphabet', ['base64url.bearer.authorization.k8s.io.+/+/, x'], 'Unauthorized'],
    ['with stray bits', ['base64url.bearer.authorization.k8s.io.YR, x'], 'Unauthorized'],
    ['not UTF-8', [`${encoded(Buffer.from([0xff]))}, x`], 'Unauthorized'],
    ['under another name', ['bearer.authorization.k8s.io.YQ, x'], 'none'],
  ])('%s', (_how, protocols, expected) => {
    expect(outcome(() => bearerToken(offering(...protocols)))).toBe(expected)
  })

  test('is a wrong credential on a request that is no WebSocket', () => {
    const request = requestWith([['Sec-WebSocket-Protocol', `${encoded('abc')}, x`]])
    expect(outcome(() => bearerToken(request))).toBe('Unauthorized')
  })

  test('does not count beside another token', () => {
    const request = requestWith([
      ...upgrade,
      ['Sec-WebSocket-Protocol', `${encoded('abc')}, x`],
      ['Authorization', 'Bearer abc'],
    ])
    expect(outcome(() => bearerToken(request))).toBe('Unauthorized')
  })
})

describe('authenticators of tokens', () => {
  const knows = (token: string, found = jane): TokenAuthenticator => ({
    name: 'knows',
    authenticateToken: (asked) => (asked === token ? found : undefined),
  })
  const knowsLater = (token: string): TokenAuthenticator => ({
    name: 'knows-later',
    authenticateToken: async (asked) => (asked === token ? jane : undefined),
  })
  const refuses: TokenAuthenticator = {
    name: 'refuses',
    authenticateToken: async () => {
      throw unauthorized('expired')
    },
  }
  const ask = async (...authenticators: TokenAuthenticator[]) =>
    bearerTokens(authenticators).authenticate(authorization('Bearer t'), signal)

  test('are asked in order', async () => {
    expect(await ask(knows('other'), knows('t'))).toBe(jane)
    expect(await ask(knowsLater('other'), knowsLater('t'))).toBe(jane)
  })

  test.each([
    ['nobody knows', [knows('other'), knowsLater('another')]],
    ['somebody knows to be bad', [refuses, knows('t')]],
    ['there is nobody to know', []],
  ])('a token that %s is 401 [GND-R70]', async (_what, authenticators) => {
    await expect(ask(...authenticators)).rejects.toMatchObject({ reason: 'Unauthorized' })
  })

  describe('that name no audience stand for the API server only [ISS-K9]', () => {
    const apiAudiences = () => ['api', 'cluster']
    test.each<[string, readonly string[] | undefined, readonly string[] | undefined | 'none']>([
      ['a request', undefined, undefined],
      ['a review for whoever', [], ['api', 'cluster']],
      ['a review for the API server', ['x', 'cluster'], ['cluster']],
      ['a review for somebody else', ['vault'], 'none'],
    ])('%s', async (_name, asked, expected) => {
      for (const inner of [knows('t'), knowsLater('t')]) {
        const found = await forApiAudiences(inner, apiAudiences).authenticateToken(
          't',
          signal,
          asked,
        )
        expect(found ? found.audiences : 'none').toEqual(expected)
      }
    })
  })

  test('answer TokenReview without a request', async () => {
    const tokens = bearerTokens([knowsLater('t')])
    expect(await tokens.authenticateToken('t', signal)).toBe(jane)
    expect(await tokens.authenticateToken('u', signal)).toBeUndefined()
  })
})
