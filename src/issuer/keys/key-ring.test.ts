import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  advanced,
  type KeyRing,
  nextChangeAt,
  signingKeyOf,
  stageOf,
  defaultRotationTimes as times,
  withNextKey,
  withOnlyKey,
  withTokenUntil,
} from './key-ring.ts'

const start = 1_800_000_000_000
const hour = 3_600_000
const first = withNextKey([], 'a', start, times)
const stages = (ring: KeyRing, now: number): string =>
  ring.map((key) => `${key.kid} ${stageOf(ring, key, now)}`).join(', ')

test('the first key signs at once', () => {
  expect(stages(first, start)).toBe('a signing')
})

describe('a rotation', () => {
  const begun = withNextKey(first, 'b', start + hour, times)
  const switched = start + hour + times.publishMs

  test.each([
    ['publishes the next key first', start + hour, 'a signing, b next'],
    ['waits until everybody can have seen it', switched - 1, 'a signing, b next'],
    ['then lets it sign', switched, 'a retired, b signing'],
  ])('%s', (_name, now, expected) => {
    expect(stages(advanced(begun, now, times), now)).toBe(expected)
  })

  test('keeps the old key until its last token has died', () => {
    const lastToken = switched + 24 * hour
    const ring = advanced(withTokenUntil(begun, 'a', lastToken, switched - 1), switched, times)
    expect(stages(advanced(ring, lastToken, times), lastToken)).toBe('a retired, b signing')
    const { tokensUntil = 0 } = ring[0] ?? {}
    const dead = tokensUntil + times.marginMs
    expect(stages(advanced(ring, dead - 1, times), dead - 1)).toBe('a retired, b signing')
    expect(stages(advanced(ring, dead, times), dead)).toBe('b signing')
  })

  test('says when it goes on', () => {
    expect(nextChangeAt(begun, start + hour, times)).toBe(switched)
    const ring = advanced(begun, switched, times)
    expect(nextChangeAt(ring, switched, times)).toBe(switched + times.marginMs)
    expect(nextChangeAt(first, start, times)).toBeUndefined()
  })
})

test('keys take over in the order of their times, whichever was published first', () => {
  const slow = withNextKey(first, 'slow', start, { ...times, publishMs: 24 * hour })
  const ring = withNextKey(slow, 'quick', start, times)
  expect(stages(ring, start + times.publishMs)).toBe('a retired, quick signing, slow next')
  expect(stages(ring, start + 24 * hour)).toBe('a retired, quick retired, slow signing')
})

test('after a theft only the new key is left, and it signs', () => {
  expect(stages(withOnlyKey('c', start), start)).toBe('c signing')
})

test('tokens are noted before they are handed out, and seldom', () => {
  let ring = first
  let writes = 0
  for (let now = start; now < start + 24 * hour; now += 60_000) {
    const next = withTokenUntil(ring, 'a', now + hour, now)
    if (next !== ring) writes += 1
    ring = next
    expect(ring[0]?.tokensUntil).toBeGreaterThanOrEqual(now + hour)
  }
  expect(writes).toBeLessThanOrEqual(25)
})

test('whatever happens, exactly one key signs, it was seen long enough, and no token outlives its key', () => {
  const step = fc.record({
    passMs: fc.integer({ min: 0, max: 5 * hour }),
    rotates: fc.boolean(),
    tokenMs: fc.integer({ min: 600_000, max: 48 * hour }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = start
      let ring = first
      const tokens: { kid: string; until: number }[] = []
      for (const [index, { passMs, rotates, tokenMs }] of steps.entries()) {
        now += passMs
        ring = advanced(ring, now, times)
        if (rotates) ring = withNextKey(ring, `k${index}`, now, times)
        const signer = signingKeyOf(ring, now)
        const seen = signer && (signer.kid === 'a' || now - signer.publishedAt >= times.publishMs)
        expect(seen).toBe(true)
        const { kid } = signer ?? { kid: '' }
        ring = withTokenUntil(ring, kid, now + tokenMs, now)
        tokens.push({ kid, until: now + tokenMs })
        const known = new Set(ring.map((key) => key.kid))
        for (const token of tokens) expect(token.until <= now || known.has(token.kid)).toBe(true)
      }
    }),
  )
})
