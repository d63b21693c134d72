import { expect, test } from 'vitest'
import { type Clock, hasReason, silentLogger, systemClock } from '../../core/index.ts'
import {
  generateBootstrapToken,
  parseBootstrapToken,
  tokenText,
} from '../tokens/bootstrap-token.ts'
import { mintDiscoveryJwt } from '../tokens/signature.ts'
import type { StoredToken } from '../tokens/stored-token.ts'
import { bootstrapTokens, tokenKeys } from './authenticator.ts'
import { discoveryRequests } from './discovery-authenticator.ts'
import { FailureLimit } from './failure-limit.ts'

function limitOf(perMinute: number) {
  let now = 0
  const clock: Clock = { ...systemClock, monotonic: () => now }
  const counts = { failed: 0, refused: 0 }
  const limit = new FailureLimit({
    clock,
    perMinute,
    bucketOf: (address) => address,
    metrics: {
      tokenFailed: () => {
        counts.failed++
      },
      tokenRefused: () => {
        counts.refused++
      },
    },
  })
  return {
    limit,
    counts,
    /** The status of a failure. */
    fail: (source: string | undefined, id = 'aaaaaa') =>
      outcomeOf(() => limit.failed({ source, id })) ?? 401,
    pass: (ms: number) => {
      now += ms
    },
  }
}

function outcomeOf(attempt: () => unknown): number | undefined {
  try {
    attempt()
    return undefined
  } catch (error) {
    return hasReason(error, 'TooManyRequests') ? 429 : 401
  }
}

const times = <T>(count: number, run: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => run(index))

test('[DISC-S13, SEC-R2102] failures of one address with one token get 429 until the minute is over', () => {
  const { fail, pass, counts } = limitOf(3)
  expect(times(4, () => fail('10.0.0.1'))).toEqual([401, 401, 401, 429])
  pass(59_999)
  expect(fail('10.0.0.1')).toBe(429)
  pass(1)
  expect(fail('10.0.0.1')).toBe(401)
  expect(counts).toEqual({ failed: 6, refused: 2 })
})

test('[DISC-S13, SEC-R2102] another token at that address and that token at another address are not affected', () => {
  const { fail } = limitOf(3)
  times(10, () => fail('10.0.0.1'))
  expect([fail('10.0.0.1', 'bbbbbb'), fail('10.0.0.2')]).toEqual([401, 401])
})

test('[DISC-S13] there can be no limit, and tokens in reviews have none', () => {
  const off = limitOf(0)
  expect(new Set(times(1000, () => off.fail('10.0.0.1')))).toEqual(new Set([401]))
  const on = limitOf(1)
  on.fail('10.0.0.1')
  expect(on.fail(undefined)).toBe(401)
})

test('[DISC-S13, SEC-R2102] what is remembered has an end', () => {
  const { fail, pass } = limitOf(1)
  fail('10.0.0.1')
  times(2, (round) => {
    times(5_999, (index) => fail(`fd00::${round}:${index}`))
    pass(30_000)
  })
  expect(fail('10.0.0.1')).toBe(401)
})

test('[SEC-R2102] all failures together have a ceiling', () => {
  const { fail, pass } = limitOf(60)
  const seen = times(6_001, (index) => fail(`fd00::${index}`, 'cccccc'))
  expect([seen.at(-2), seen.at(-1)]).toEqual([401, 429])
  pass(60_000)
  expect(fail('10.0.0.1')).toBe(401)
})

const right = generateBootstrapToken()
const stored = (changes: Partial<StoredToken> = {}): StoredToken => ({
  token: right,
  usages: new Set(['signing', 'authentication']),
  extraGroups: [],
  ...changes,
})

/** Both authenticators on one limit, for one stored token. */
function authenticatorsOf(token: StoredToken | undefined, limit: FailureLimit) {
  const book = { find: (id: string) => (id === right.id ? token : undefined) }
  const show = bootstrapTokens(book, limit, silentLogger)
  const signed = discoveryRequests({
    keys: tokenKeys(book, () => undefined),
    failures: limit,
    clock: systemClock,
    log: silentLogger,
    clusterId: () => undefined,
  })
  const authenticate = (each: typeof show, text: string, source: string) =>
    each.authenticateToken(text, AbortSignal.abort(), undefined, source)
  return {
    show: (given: typeof right, source: string) =>
      authenticate(show, tokenText(given).reveal(), source),
    sign: (given: typeof right, source: string) =>
      authenticate(signed, mintDiscoveryJwt(given, Date.now()), source),
  }
}

const wrong = parseBootstrapToken(`${right.id}.0123456789abcdef`)
const failing = [
  ['one address with the same token', 100, () => wrong, () => '10.0.0.1'],
  ['one address with other tokens', 100, () => generateBootstrapToken(), () => '10.0.0.1'],
  [
    'all addresses, above the ceiling',
    7_000,
    () => wrong,
    (index: number) => `10.0.${index >> 8}.${index & 255}`,
  ],
] as const

test.each(
  failing.flatMap((row) => (['show', 'sign'] as const).map((way) => [way, ...row] as const)),
)(
  '[SEC-R2101] a token that verifies (%s) is accepted after failures of %s',
  (way, _name, count, token, source) => {
    const { limit, counts } = limitOf(3)
    const by = authenticatorsOf(stored(), limit)
    times(count, (index) => {
      for (const each of ['show', 'sign'] as const)
        outcomeOf(() => by[each](token(), source(index)))
    })
    expect(counts.failed).toBe(2 * count)
    const found = by[way](right, '10.0.0.1') as { credential?: unknown } | undefined
    expect(found?.credential).toEqual({ type: 'token', id: right.id })
  },
)

test.each(
  (['show', 'sign'] as const).flatMap((way) => [
    [way, 'unknown or expired', undefined, right] as const,
    [way, 'wrong secret', stored(), wrong] as const,
    [
      way,
      'longer secret',
      stored(),
      parseBootstrapToken(`${right.id}.${'0123456789abcdef'.repeat(4)}`),
    ] as const,
    [way, 'wrong usage', stored({ usages: new Set(['signing']) }), right] as const,
  ]),
)('[SEC-R2103] %s, %s: the same failures in the same order', (way, _name, token, given) => {
  const { limit } = limitOf(2)
  const by = authenticatorsOf(token, limit)
  const attempt = () => {
    try {
      return by[way](given, '10.0.0.1') ?? 'undefined'
    } catch (error) {
      const { reason, message } = error as { reason: string; message: string }
      return `${reason}: ${message}`
    }
  }
  const failed = way === 'show' ? 'undefined' : 'Unauthorized: Unauthorized'
  const limited = 'TooManyRequests: too many failures with bootstrap tokens, try again later'
  expect(times(3, attempt)).toEqual([failed, failed, limited])
})
