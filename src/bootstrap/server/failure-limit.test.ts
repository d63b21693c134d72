import { expect, test } from 'vitest'
import { type Clock, hasReason, systemClock } from '../../core/index.ts'
import { FailureLimit } from './failure-limit.ts'

function limitOf(perMinute: number) {
  let now = 0
  const clock: Clock = { ...systemClock, monotonic: () => now }
  const counts = { failed: 0, refused: 0 }
  const limit = new FailureLimit(clock, perMinute, {
    tokenFailed: () => {
      counts.failed++
    },
    tokenRefused: () => {
      counts.refused++
    },
  })
  return {
    counts,
    fail: (source: string, id = 'aaaaaa', times = 1) => {
      for (let index = 0; index < times; index++) limit.failed({ source, id })
    },
    isRefused: (source: string | undefined, id = 'aaaaaa') => {
      try {
        limit.check({ source, id })
        return false
      } catch (error) {
        return hasReason(error, 'TooManyRequests')
      }
    },
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('[DISC-S13] an address is refused after its failures, for any token, until the minute is over', () => {
  const { fail, isRefused, pass, counts } = limitOf(3)
  fail('10.0.0.1', 'aaaaaa', 2)
  expect(isRefused('10.0.0.1')).toBe(false)
  fail('10.0.0.1')
  expect([isRefused('10.0.0.1'), isRefused('10.0.0.1', 'bbbbbb')]).toEqual([true, true])
  pass(59_999)
  expect(isRefused('10.0.0.1')).toBe(true)
  pass(1)
  expect(isRefused('10.0.0.1')).toBe(false)
  expect(counts).toEqual({ failed: 3, refused: 3 })
})

test('[DISC-S13] nobody locks others out of a token, and who has failed waits', () => {
  const { fail, isRefused } = limitOf(3)
  fail('10.0.0.1', 'aaaaaa', 3)
  fail('10.0.0.2', 'bbbbbb')
  expect(isRefused('10.0.0.3')).toBe(false)
  expect(isRefused('10.0.0.2')).toBe(true)
  expect(isRefused('10.0.0.2', 'bbbbbb')).toBe(false)
})

test('[DISC-S13] there can be no limit, and questions about tokens of others have none', () => {
  const off = limitOf(0)
  off.fail('10.0.0.1', 'aaaaaa', 1000)
  expect(off.isRefused('10.0.0.1')).toBe(false)
  const on = limitOf(1)
  on.fail('10.0.0.1')
  expect(on.isRefused(undefined)).toBe(false)
})

test('[DISC-S13] what is remembered has an end', () => {
  const { fail, isRefused } = limitOf(1)
  fail('10.0.0.1')
  for (let index = 0; index < 10_000; index++) fail(`fd00::${index}`)
  expect([isRefused('10.0.0.1'), isRefused('fd00::9999')]).toEqual([false, true])
})
